"""The environment's model: facts about the software under test and the machine below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from validator.errors import TrajectoryError

SCHEMA = "validator/environment"
VERSION = 1


class Kind(StrEnum):
    """What a fact is about, in the order in which differences are listed."""

    COMPUTATION = "computation"  # what the pipeline's file says, apart from arguments and variables
    VARIABLES = "variables"  # environment variables of the launch that can change bits
    PACKAGES = "packages"  # distributions of the launch's Python, and Python itself
    MEGATRON = "megatron"  # version, commit, place of the Megatron that was imported
    ARGUMENTS = "arguments"  # Megatron's arguments as it resolved them
    TORCH = "torch"  # PyTorch's build and switches inside the launch
    WORKLOAD = "workload"  # digest of the validator's own code inside the launch
    HARDWARE = "hardware"  # CPU and GPUs
    SYSTEM = "system"  # kernel, C library, driver
    IMAGE = "image"  # the container image: identity, system, distribution packages, variables, entrypoint, labels


class Origin(StrEnum):
    """Who says so."""

    OBSERVED = "observed"  # looked up from outside the launch
    CLAIMED = "claimed"  # told by the launch itself


@dataclass(frozen=True, slots=True)
class Fact:
    """One value, as text (JSON where it is no text by nature), and who says so."""

    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Environment:
    """All facts of one launch, by kind and name."""

    facts: Mapping[Kind, Mapping[str, Fact]]

    def get(self, kind: Kind, name: str) -> str | None:
        """The value of one fact, ``None`` where the environment does not have it."""
        fact = self.facts.get(kind, {}).get(name)
        return None if fact is None else fact.value

    def to_json(self) -> dict[str, object]:
        """Plain values in a stable order, for a trajectory's environment.json."""
        kinds = {
            str(kind): {name: [str(fact.origin), fact.value] for name, fact in sorted(self.facts[kind].items())}
            for kind in Kind
            if self.facts.get(kind)
        }
        return {"schema": SCHEMA, "version": VERSION, "facts": kinds}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Self:
        """Read what ``to_json`` wrote; raises ``TrajectoryError`` for anything else."""
        if content.get("schema") != SCHEMA or content.get("version") != VERSION:
            found = f"schema {content.get('schema')!r}, version {content.get('version')!r}"
            raise TrajectoryError(f"An environment has {found}; this program reads {SCHEMA}, version {VERSION}.")
        kinds = content.get("facts")
        try:
            if not isinstance(kinds, Mapping):
                raise TypeError
            facts = {
                Kind(kind): MappingProxyType({name: _fact(pair) for name, pair in named.items()})
                for kind, named in kinds.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            message = f"An environment's facts are malformed ({error}); take the file from a trajectory that verifies."
            raise TrajectoryError(message) from error
        return cls(MappingProxyType(facts))


def _fact(pair: object) -> Fact:
    origin, value = pair if isinstance(pair, (list, tuple)) else ()
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return Fact(value, Origin(origin))
