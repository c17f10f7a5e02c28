"""The arms of a measurement: what each one's launches are given. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from validator.check.arguments import launch_variables
from validator.pipeline import Computation, Device
from validator.pipeline.overhead import DefaultArm, OverheadPolicy

DETERMINISTIC = "deterministic"
DEFAULT = "default"
WITHOUT_FILL = "deterministic-without-fill"

#: Variables that keep the fastest kernels of a hardware class from being chosen.
_SLOWING = {
    Device.CPU: ("ATEN_CPU_CAPABILITY", "MKL_CBWR"),
    Device.CUDA: (
        "CUBLAS_WORKSPACE_CONFIG",
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NVTE_ALLOW_NONDETERMINISTIC_ALGO",
        "MAMBA_DETERMINISTIC",
        "CAUSAL_CONV1D_DETERMINISTIC",
    ),
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of the comparison.

    ``deterministic`` says whether ``--deterministic-mode`` is given; ``settings`` are those of a launch request.
    ``purpose`` is for people.
    """

    name: str
    purpose: str
    computation: Computation
    deterministic: bool
    settings: Mapping[str, bool] = field(default_factory=dict)
    switches: Mapping[str, object] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """All variables that a launch of this arm gets, without what ``--env`` changes."""
        return launch_variables(self.computation)


def deterministic_arm(computation: Computation) -> Arm:
    """The computation as its check launches it."""
    return Arm(DETERMINISTIC, "as the check launches it", computation, deterministic=True)


def without_fill_arm(computation: Computation) -> Arm:
    """The deterministic arm, but new memory stays as it is found."""
    purpose = "deterministic, without fill_uninitialized_memory"
    return Arm(WITHOUT_FILL, purpose, computation, True, {"fill_uninitialized_memory": False})


def default_arm(computation: Computation, policy: OverheadPolicy) -> Arm:
    """The fastest default mode: that of the hardware class, changed as the policy says."""
    changed: DefaultArm = policy.default
    unset = {*_SLOWING[computation.device], *changed.unset}
    variables = {name: value for name, value in computation.variables.items() if name not in unset}
    arguments = (*drop_options(computation.arguments, changed.without), *changed.arguments)
    fastest = replace(computation, variables=variables | dict(changed.variables), arguments=arguments)
    settings = {"mkldnn": True} if computation.device is Device.CPU else {}
    return Arm(DEFAULT, "the fastest default mode", fastest, deterministic=False, settings=settings)


def drop_options(words: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """``words`` without the ``options`` and the values that follow them."""
    kept: list[str] = []
    dropping = False
    for word in words:
        if word.startswith("--"):
            dropping = word.partition("=")[0] in options
        if not dropping:
            kept.append(word)
    return tuple(kept)
