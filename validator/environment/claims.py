"""From what a launch says of itself, and what its host is seen to be, to an environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from validator.environment.facts import Environment, Fact, Kind, Origin
from validator.environment.host import Host
from validator.environment.variables import capture_variables
from validator.errors import TrajectoryError

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def from_claims(
    claims: Mapping[str, object],
    host: Host,
    computation: Mapping[str, object] | None = None,
    image: Mapping[str, str] | None = None,
) -> Environment:
    """The environment of a launch.

    ``claims`` is what its rank 0 wrote: ``python``, ``packages``, ``megatron``, ``arguments``, ``variables``,
    ``torch``, ``workload_digest``, each of which may be missing. ``computation`` is the pipeline's, as
    ``Computation.to_json`` gives it, and ``image`` what was seen of the container image that it ran in. Raises
    ``TrajectoryError`` where a claim has the wrong type.
    """
    packages = dict(_mapping(claims, "packages"))
    if "python" in claims:
        packages["python"] = claims["python"]
    variables = capture_variables({name: _text(value) for name, value in _mapping(claims, "variables").items()})
    digest = claims.get("workload_digest")
    claimed: dict[Kind, Mapping[str, object]] = {
        Kind.PACKAGES: packages,
        Kind.MEGATRON: _mapping(claims, "megatron"),
        Kind.ARGUMENTS: _mapping(claims, "arguments"),
        Kind.VARIABLES: variables,
        Kind.TORCH: _mapping(claims, "torch"),
        Kind.WORKLOAD: {} if digest is None else {"digest": digest},
    }
    observed: dict[Kind, Mapping[str, object]] = {
        Kind.COMPUTATION: _computation(computation or {}),
        Kind.HARDWARE: _hardware(host),
        Kind.SYSTEM: _system(host),
        Kind.IMAGE: image or {},
    }
    facts = {kind: _facts(values, Origin.CLAIMED) for kind, values in claimed.items()}
    facts |= {kind: _facts(values, Origin.OBSERVED) for kind, values in observed.items()}
    return Environment(MappingProxyType({kind: facts[kind] for kind in Kind if facts[kind]}))


def _computation(computation: Mapping[str, object]) -> dict[str, object]:
    """The pipeline's own keys, nested ones dotted; arguments and variables are facts of their own kind."""
    flat: dict[str, object] = {}

    def flatten(prefix: str, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            if isinstance(value, Mapping):
                flatten(f"{prefix}{name}.", value)
            else:
                flat[f"{prefix}{name}"] = value

    flatten("", {name: value for name, value in computation.items() if name not in ("arguments", "variables")})
    return flat


def _hardware(host: Host) -> dict[str, object]:
    hardware: dict[str, object] = {
        "architecture": host.architecture,
        "cpu": host.cpu_model,
        "cpu level": host.cpu_level,
        "cpus": host.cpus,
        "memory GiB": host.memory_gibibytes,
    }
    for index, gpu in enumerate(host.gpus):
        hardware[f"gpu {index}"] = gpu.name
        hardware[f"gpu {index} compute capability"] = gpu.capability
        hardware[f"gpu {index} memory MiB"] = gpu.memory_mebibytes
    for device in host.devices:
        hardware |= {f"gpu {device.index} {name}": value for name, value in device.stable.items()}
    return hardware


def _system(host: Host) -> dict[str, object]:
    system: dict[str, object] = {"kernel": host.kernel, "libc": host.libc}
    if host.gpus:
        system["nvidia driver"] = host.gpus[0].driver
    return system


def _facts(values: Mapping[str, object], origin: Origin) -> Mapping[str, Fact]:
    return MappingProxyType({name: Fact(_text(value), origin) for name, value in sorted(values.items())})


def _text(value: object) -> str:
    """The value as a fact's text; an object's place in memory, as its repr has it, differs in every launch."""
    return _ADDRESS.sub("", value if isinstance(value, str) else json.dumps(value, sort_keys=True))


def _mapping(claims: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = claims.get(name) or {}
    if not isinstance(value, Mapping):
        raise TrajectoryError(
            f"The launch's claims have {value!r} as {name!r}; accepted is a mapping from names to values."
        )
    return value
