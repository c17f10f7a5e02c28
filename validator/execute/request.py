"""What the host asks of one launch: a JSON file that both sides read. Standard library only, like all that a launch
loads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from validator.errors import LaunchError

SCHEMA = "validator/launch"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """One leaf whose raw bytes the launch hands over, picked by the host before the launch begins.

    The leaf's index within the group is ``pick`` modulo the number of leaves. ``moment`` reads ``step:3``.
    """

    rank: int
    moment: str
    group: str
    pick: int

    @property
    def stem(self) -> str:
        """Name, without suffix, of the two files (``.json``: leaf, moment, group; ``.bin``: bytes) under
        ``samples/``.
        """
        return f"rank-{self.rank:05d}.{self.moment.replace(':', '-')}.{self.group}"


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Everything a launch needs to know. Paths are absolute.

    ``arguments`` is the whole Megatron command line, saving and loading included. Where ``corpus`` is given, the
    launch generates it at ``corpus_prefix``, which ``--data-path`` in ``arguments`` names already. ``restore_step``
    is the step that ``--load``/``--ckpt-step`` restore, ``None`` for a fresh start. ``flips`` is a random number from
    which the launch picks one bit of each group to flip after its last step; ``None`` leaves everything alone.
    ``trace`` is the one step whose modules, collectives and optimizer are written down in order, on every rank.
    """

    device: str
    spec: str
    arguments: tuple[str, ...]
    corpus: Mapping[str, int] | None
    ranks: int
    steps: int
    seed: int
    trajectory: Path
    scratch: Path
    record: bool = True
    restore_step: int | None = None
    samples: tuple[Sample, ...] = ()
    flips: int | None = None
    stamps: tuple[str, ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    measure: str | None = None
    settings: Mapping[str, bool] = field(default_factory=dict)
    trace: int | None = None

    @property
    def corpus_prefix(self) -> Path:
        """Prefix of the generated ``.bin``/``.idx`` pair, as ``--data-path`` takes it."""
        return corpus_prefix(self.scratch)

    @property
    def samples_directory(self) -> Path:
        return self.trajectory / "samples"

    @property
    def claims_file(self) -> Path:
        """Where rank 0 writes what it claims about its environment."""
        return self.trajectory / "claims.json"

    @property
    def trace_directory(self) -> Path:
        """Where every rank writes its trace, ``rank-00000.jsonl`` and so on."""
        return self.scratch / "trace"

    def trace_file(self, rank: int) -> Path:
        """Where a rank writes its trace."""
        return self.trace_directory / f"rank-{rank:05d}.jsonl"

    def measurement_file(self, rank: int) -> Path:
        """Where a measured launch's rank writes what it measured."""
        return self.scratch / f"measured-{rank:05d}.json"

    def write_measurement(self, rank: int, content: Mapping[str, Any]) -> None:
        """Leave what a rank measured, whole or not at all."""
        _write_whole(self.measurement_file(rank), content)

    def account_file(self, rank: int) -> Path:
        """Where ``faults/witness.py`` writes."""
        return self.scratch / account_name(rank)

    def touched_file(self, rank: int) -> Path:
        """Where ``faults/act.py`` writes."""
        return self.scratch / touched_name(rank)

    def coverage_file(self, rank: int) -> Path:
        """What ``write_coverage`` writes."""
        return self.trajectory / f"checkpoint-{rank:05d}.json"

    def write_coverage(self, rank: int, unmapped: Sequence[str]) -> None:
        """Say, before each save, which tensors of the checkpoint map to no leaf.

        A launch that is killed after its save has no end record to say so in. Written whole or not at all, since the
        kill may come at any time.
        """
        _write_whole(self.coverage_file(rank), {"unmapped": list(unmapped)})

    def write(self, path: Path) -> None:
        """Write the request as JSON, whole or not at all."""
        content: dict[str, Any] = {"schema": SCHEMA, "version": VERSION} | asdict(self)
        content["trajectory"] = str(self.trajectory)
        content["scratch"] = str(self.scratch)
        _write_whole(path, content)

    @classmethod
    def read(cls, path: Path) -> LaunchRequest:
        """Read a request; raises ``LaunchError`` where the file is none of this version."""
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or (content.pop("schema", None), content.pop("version", None)) != (
            SCHEMA,
            VERSION,
        ):
            raise LaunchError(
                f"{path} is no launch request of {SCHEMA} version {VERSION}; write it with LaunchRequest.write."
            )
        known = {item.name for item in fields(cls)}
        if unknown := sorted(content.keys() - known):
            raise LaunchError(f"{path} has the unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}.")
        content["arguments"] = tuple(content["arguments"])
        content["stamps"] = tuple(content["stamps"])
        content["samples"] = tuple(Sample(**sample) for sample in content["samples"])
        content["trajectory"] = Path(content["trajectory"])
        content["scratch"] = Path(content["scratch"])
        return cls(**content)


def account_name(rank: int) -> str:
    """The file in a self-test's scratch folder in which a rank says what it saw without the recorder."""
    return f"witness-{rank:05d}.jsonl"


def touched_name(rank: int) -> str:
    """The file in a self-test's scratch folder in which a fault says what it changed on a rank."""
    return f"touched-{rank:05d}.jsonl"


def _write_whole(path: Path, content: Mapping[str, Any]) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def corpus_prefix(scratch: Path) -> Path:
    """Where a launch with this scratch folder generates its corpus."""
    return scratch / "corpus" / "corpus_text_document"


def launch_command(
    python: Path, ranks: int, port: int, request: Path, module: str = "validator.workload.entry"
) -> Sequence[str]:
    """The command line of one launch on one node: torchrun with ``ranks`` processes of ``-m validator.workload.entry
    REQUEST``.
    """
    return [
        str(python), "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(ranks),
        "--rdzv-backend", "static", "--master-addr", "127.0.0.1", "--master-port", str(port),
        "-m", module, str(request),
    ]  # fmt: skip
