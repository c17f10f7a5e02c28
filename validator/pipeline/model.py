"""What a pipeline is: the computation that a launch carries out, and the policy by which its bits are judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from validator.pipeline.limits import Limits
from validator.pipeline.overhead import OverheadPolicy
from validator.pipeline.triggers import Triggers
from validator.pipeline.waivers import Waiver


class Device(StrEnum):
    """What the ranks compute on."""

    CPU = "cpu"
    CUDA = "cuda"


class Spec(StrEnum):
    """The layer specification that the model is built from."""

    REFERENCE = "reference"  # plain PyTorch layers; runs on CPU as well
    MEGATRON = "megatron"  # NVIDIA's own hybrid_stack_spec; needs Transformer Engine


class SaveMode(StrEnum):
    """How a checkpoint is written."""

    SYNCHRONOUS = "synchronous"
    ASYNCHRONOUS = "asynchronous"


class Requirement(StrEnum):
    """What a gate's outcome does to the verdict."""

    REQUIRED = "required"
    ADVISORY = "advisory"
    OFF = "off"


class Gate(StrEnum):
    """One question of a check."""

    GOLDEN = "golden"
    REPEATABILITY = "repeatability"
    RESUME = "resume"
    OVERHEAD = "overhead"


@dataclass(frozen=True, slots=True)
class Corpus:
    """A token corpus that the launch generates from integers: the same bytes on every machine."""

    documents: int
    vocabulary: int
    seed: int

    def to_json(self) -> dict[str, object]:
        return {"corpus": {"documents": self.documents, "vocabulary": self.vocabulary, "seed": self.seed}}


@dataclass(frozen=True, slots=True)
class TokenFiles:
    """The user's own Megatron data: ``prefix.bin`` and ``prefix.idx``. ``written`` is the prefix as the file has it."""

    prefix: Path
    written: str

    def to_json(self) -> dict[str, object]:
        return {"prefix": self.written}


@dataclass(frozen=True, slots=True)
class Computation:
    """Everything of a pipeline that may change bits, and nothing else.

    ``ranks`` is the number of ranks on each node, ``steps`` the optimizer steps of an uninterrupted launch,
    ``arguments`` Megatron's own command line without what the validator sets itself.
    """

    device: Device
    nodes: int
    ranks: int
    steps: int
    seed: int
    spec: Spec
    data: Corpus | TokenFiles
    arguments: tuple[str, ...]
    variables: Mapping[str, str]

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks

    def to_json(self) -> dict[str, object]:
        """Plain values, for a trajectory's header; equal computations give equal values."""
        return {
            "device": str(self.device),
            "nodes": self.nodes,
            "ranks": self.ranks,
            "steps": self.steps,
            "seed": self.seed,
            "spec": str(self.spec),
            "data": self.data.to_json(),
            "arguments": list(self.arguments),
            "variables": dict(sorted(self.variables.items())),
        }

    @property
    def digest(self) -> str:
        """SHA-256 over the content, hexadecimal: comments, layout and the policy do not count."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()


#: Steps that a segment trains past its save, so that saving is seen not to disturb the living run.
STEPS_PAST_SAVE = 2


@dataclass(frozen=True, slots=True)
class Save:
    """A checkpoint of the resume chain, written after optimizer step ``step``."""

    step: int
    mode: SaveMode


@dataclass(frozen=True, slots=True)
class Policy:
    """How a check judges, without any influence on bits. ``launch_seconds`` is the longest that one launch may take."""

    gates: Mapping[Gate, Requirement]
    saves: tuple[Save, ...]
    launch_seconds: int
    waivers: tuple[Waiver, ...]
    triggers: Triggers = field(default_factory=Triggers)
    limits: Limits = field(default_factory=Limits)
    overhead: OverheadPolicy = field(default_factory=OverheadPolicy)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One file of pipelines/."""

    name: str
    description: str
    computation: Computation
    policy: Policy
    file: Path
