"""The golden store: under each pipeline and hardware class exactly one approved trajectory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from validator.errors import TrajectoryError, ValidatorError
from validator.golden.approval import Approval, check_candidate
from validator.golden.drift import check_drift, measure_drift
from validator.golden.files import RECORD, TRACE, TRAJECTORY, check_files, digest_files, replace_folder
from validator.golden.history import NoHistoryError, Repository
from validator.golden.record import Drift, GoldenRecord
from validator.trajectory.reader import Trajectory


@dataclass(frozen=True, slots=True)
class Golden:
    """An approved trajectory, read and found unedited."""

    folder: Path
    record: GoldenRecord
    trajectory: Trajectory

    @property
    def digest(self) -> str:
        return self.record.digest

    @property
    def trace(self) -> Path | None:
        """The module trace of step 1 that was recorded with the golden, ``None`` where there is none."""
        return self.folder / TRACE if TRACE in self.record.files else None


@dataclass(frozen=True, slots=True)
class GoldenStore:
    """A folder with ``<pipeline>/<hardware class>/{golden.json, trajectory/}``, and ``trace.jsonl.xz`` where there is a
    module trace of step 1.

    Where it ``follows_git``, a new golden supersedes the one last committed, else the one on disk.
    """

    root: Path
    follows_git: bool = True

    def folder(self, pipeline: str, hardware_class: str) -> Path:
        return self.root / pipeline / hardware_class

    def keys(self) -> tuple[tuple[str, str], ...]:
        """All (pipeline, hardware class) that have a golden.json, sorted; it is not read."""
        return tuple(sorted((path.parent.parent.name, path.parent.name) for path in self.root.glob(f"*/*/{RECORD}")))

    def record(self, pipeline: str, hardware_class: str) -> GoldenRecord | None:
        """The record alone, ``None`` where there is no golden; raises ``TrajectoryError`` where it was edited."""
        file = self.folder(pipeline, hardware_class) / RECORD
        try:
            text = file.read_bytes().decode()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise TrajectoryError(f"{file} cannot be read ({error}); restore it from git or record it anew.") from error
        record = GoldenRecord.from_text(text, str(file))
        if (record.pipeline, record.hardware_class) != (pipeline, hardware_class):
            found = f"{record.pipeline} on {record.hardware_class}"
            raise TrajectoryError(f"{file} is the golden of {found}; move it to the folder of that name.")
        return record

    def find(self, pipeline: str, hardware_class: str) -> Golden | None:
        """The golden under this key, ``None`` where there is none; ``TrajectoryError`` where any file was edited."""
        record = self.record(pipeline, hardware_class)
        if record is None:
            return None
        folder = self.folder(pipeline, hardware_class)
        check_files(folder, dict(record.files))
        trajectory = Trajectory.open(folder / TRAJECTORY)
        _check_header(trajectory, pipeline, hardware_class)
        return Golden(folder, record, trajectory)

    def list(self) -> tuple[GoldenRecord, ...]:
        """The records of all goldens; raises ``TrajectoryError`` for one that was edited."""
        records = (self.record(*key) for key in self.keys())
        return tuple(record for record in records if record is not None)

    def write(self, candidate: Trajectory, approval: Approval, trace: bytes | None = None) -> Golden:
        """Make ``candidate`` the golden of its pipeline and hardware class; both are in its header. ``trace`` is the
        module trace of its step 1, which explains differences and is never compared for a verdict.

        Raises ``UsageError`` where a rule forbids it, ``ValidatorError`` where it cannot be written. What it supersedes
        is the golden last committed, where git keeps the store, and else the one on disk: recording twice before a
        commit leaves no gap in the history.
        """
        pipeline, hardware_class = check_candidate(candidate, approval)
        folder = self.folder(pipeline, hardware_class)
        with self._superseded(pipeline, hardware_class) as old:
            drift: dict[str, Drift] = {}
            if old is not None:
                drift = measure_drift(old.trajectory, candidate)
                if not approval.accept_drift:
                    check_drift(drift)
            try:
                self._install(candidate, approval, old, drift, folder, trace)
            except OSError as error:
                problem = f"{folder} cannot be written ({error.strerror})"
                raise ValidatorError(f"{problem}; make room there or choose another folder with --golden.") from error
        written = self.find(pipeline, hardware_class)
        assert written is not None
        return written

    def _install(
        self, candidate: Trajectory, approval: Approval, old: Golden | None, drift: dict[str, Drift], folder: Path,
        trace: bytes | None,
    ) -> None:  # fmt: skip
        """Write all files of the new golden beside ``folder``, then put them in its place."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            copy_trajectory(candidate, new / TRAJECTORY)
            if trace is not None:
                (new / TRACE).write_bytes(trace)
            record = GoldenRecord(
                pipeline=folder.parent.name,
                hardware_class=folder.name,
                recorded=approval.recorded,
                requester=approval.requester,
                approver=approval.approver,
                reason=approval.reason,
                change=approval.change,
                launches=approval.launches,
                resume=approval.resume,
                supersedes=None if old is None else old.digest,
                ancestors=() if old is None else old.record.lineage,
                drift=drift,
                files=digest_files(new),
            )
            (new / RECORD).write_bytes(record.to_text().encode())
            new.chmod(0o755)
            replace_folder(new, folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    @contextmanager
    def _superseded(self, pipeline: str, hardware_class: str) -> Iterator[Golden | None]:
        """The golden that a new one supersedes, readable within the context."""
        folder = self.folder(pipeline, hardware_class)
        try:
            if not self.follows_git:
                raise NoHistoryError("The store is no part of a git work tree.")
            repository = Repository.around(self.root)
            if repository.ignores(folder):
                raise NoHistoryError(f"git ignores {folder}.")
            committed = repository.has_commits and repository.read("HEAD", folder / RECORD) is not None
        except NoHistoryError:
            yield self.find(pipeline, hardware_class)
            return
        if not committed:
            yield None
            return
        with tempfile.TemporaryDirectory() as temporary:
            store = GoldenStore(Path(temporary))
            repository.extract("HEAD", folder, store.folder(pipeline, hardware_class))
            yield store.find(pipeline, hardware_class)


def copy_trajectory(source: Trajectory, target: Path) -> None:
    """Copy the files of a trajectory, and nothing else that a launch left in its folder (logs, samples, claims)."""
    target.mkdir(parents=True)
    for name in source.files:
        shutil.copyfile(source.directory / name, target / name)


def _check_header(trajectory: Trajectory, pipeline: str, hardware_class: str) -> None:
    found = (trajectory.header.get("pipeline"), trajectory.header.get("hardware_class"))
    if found != (pipeline, hardware_class):
        place = f"{pipeline}/{hardware_class}"
        raise TrajectoryError(
            f"The golden in {place} holds a trajectory of {found}; restore it from git or record it anew."
        )
