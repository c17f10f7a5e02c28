"""What each arm's launches are given."""

from __future__ import annotations

from dataclasses import replace

from tests.overhead.samples import COMPUTATION
from validator.overhead.arms import default_arm, deterministic_arm, drop_options, without_fill_arm
from validator.pipeline import Device
from validator.pipeline.overhead import DefaultArm, OverheadPolicy


def test_the_deterministic_arm_is_the_computation_as_it_is_checked() -> None:
    arm = deterministic_arm(COMPUTATION)
    assert (arm.computation, arm.deterministic, dict(arm.settings)) == (COMPUTATION, True, {})
    assert arm.variables["ATEN_CPU_CAPABILITY"] == "default"


def test_the_default_arm_on_cpu_may_choose_any_kernel_and_has_one_thread() -> None:
    arm = default_arm(COMPUTATION, OverheadPolicy())
    assert not arm.deterministic
    assert not {"ATEN_CPU_CAPABILITY", "MKL_CBWR"} & arm.variables.keys()
    assert arm.variables["OTHER"] == "1"
    assert arm.variables["OMP_NUM_THREADS"] == "1"
    assert dict(arm.settings) == {"mkldnn": True}
    assert arm.computation.arguments == COMPUTATION.arguments


def test_on_a_gpu_the_variables_that_determinism_needs_are_gone() -> None:
    variables = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "NCCL_ALGO": "Ring", "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0"}
    arm = default_arm(replace(COMPUTATION, device=Device.CUDA, variables=variables), OverheadPolicy())
    assert not variables.keys() & arm.variables.keys()
    assert dict(arm.settings) == {}


def test_the_policy_changes_the_default_arm() -> None:
    changed = DefaultArm(("OTHER",), {"NEW": "2"}, ("--recompute-granularity",), ("--overlap-grad-reduce",))
    arm = default_arm(COMPUTATION, OverheadPolicy(default=changed))
    assert arm.computation.arguments == ("--hidden-size", "64", "--bf16", "--overlap-grad-reduce")
    assert "OTHER" not in arm.variables
    assert arm.variables["NEW"] == "2"


def test_the_third_arm_differs_from_the_deterministic_one_in_one_setting() -> None:
    first, third = deterministic_arm(COMPUTATION), without_fill_arm(COMPUTATION)
    assert dict(third.settings) == {"fill_uninitialized_memory": False}
    assert (third.deterministic, third.computation) == (first.deterministic, first.computation)


def test_options_are_dropped_with_their_values_in_both_spellings() -> None:
    words = ("--a", "1", "2", "--b=3", "--c", "--d", "4")
    assert drop_options(words, ("--a", "--b")) == ("--c", "--d", "4")
    assert drop_options(words, ("--c",)) == ("--a", "1", "2", "--b=3", "--d", "4")
