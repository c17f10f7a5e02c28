"""golden.json: who approved which bits, why, and what they replace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Self

from validator.errors import TrajectoryError

SCHEMA = "validator/golden"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a metric moved against the golden that is superseded, as |new - old| / max(|new|, |old|).

    ``largest`` over all steps and ranks, first reached at ``moment``; ``final`` at the last step that both have.
    """

    largest: float
    moment: str
    final: float


@dataclass(frozen=True, slots=True)
class GoldenRecord:
    """The record of one golden. ``files`` are SHA-256 digests by path below the golden's folder, without golden.json.

    ``digest`` binds the files and all of the record; ``supersedes`` is the digest of the golden before it, ``None`` for
    the first, and ``ancestors`` those before that, newest first, so that the chain can be followed where a squash merge
    or a shallow clone has no intermediate version. ``launches`` is how many independent launches gave these bits;
    ``resume`` is ``holds`` or ``off``.
    """

    pipeline: str
    hardware_class: str
    recorded: date
    requester: str
    approver: str
    reason: str
    change: str | None
    launches: int
    resume: str
    supersedes: str | None
    ancestors: tuple[str, ...]
    drift: Mapping[str, Drift]
    files: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 over the record in its canonical form, and through ``files`` over every file; hexadecimal."""
        return hashlib.sha256(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()

    @property
    def lineage(self) -> tuple[str, ...]:
        """Digests of all goldens before this one, newest first."""
        return () if self.supersedes is None else (self.supersedes, *self.ancestors)

    def to_text(self) -> str:
        """The one text that stands for this record; a golden.json that differs from it has been edited."""
        content = {"schema": SCHEMA, "version": VERSION, "digest": self.digest, **self._content()}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_text(cls, text: str, place: str) -> Self:
        """Read a golden.json; ``place`` names it in the ``TrajectoryError`` for anything but ``to_text``'s."""
        try:
            content = json.loads(text)
            schema, version = content["schema"], content["version"]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise TrajectoryError(f"{place} is no golden record; restore it from git or record it anew.") from error
        if (schema, version) != (SCHEMA, VERSION):
            found = f"schema {schema!r}, version {version!r}"
            raise TrajectoryError(f"{place} has {found}; this program reads {SCHEMA}, version {VERSION}.")
        try:
            record = cls(
                pipeline=content["pipeline"],
                hardware_class=content["hardware_class"],
                recorded=date.fromisoformat(content["recorded"]),
                requester=content["requester"],
                approver=content["approver"],
                reason=content["reason"],
                change=content["change"],
                launches=content["launches"],
                resume=content["resume"],
                supersedes=content["supersedes"],
                ancestors=tuple(content["ancestors"]),
                drift={name: Drift(**value) for name, value in content["drift"].items()},
                files=dict(content["files"]),
            )
            canonical = record.to_text()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise TrajectoryError(
                f"{place} lacks or garbles {error}; restore it from git or record it anew."
            ) from error
        if canonical != text:
            raise TrajectoryError(f"{place} was edited after it was recorded; restore it from git or record it anew.")
        return record

    def _content(self) -> dict[str, object]:
        return asdict(self) | {
            "recorded": self.recorded.isoformat(),
            "drift": {name: asdict(drift) for name, drift in sorted(self.drift.items())},
            "files": dict(sorted(self.files.items())),
        }
