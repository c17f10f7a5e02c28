"""The commit of a re-baseline: proposed goldens, looked at as untrusted, put on the causing pull request's branch."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validator.check.base import read_base_of
from validator.check.propose import INDEX, proposal_of
from validator.check.rebaseline import InvalidGoldenError, valid_golden
from validator.diagnose.traces import read_trace
from validator.errors import UsageError, ValidatorError
from validator.github.errors import ForgedResultError
from validator.github.repository import Repository
from validator.github.results import check_folder, unpack
from validator.golden import Golden, GoldenStore
from validator.golden.files import RECORD, TRACE, TRAJECTORY
from validator.pipeline import Gate, Requirement
from validator.report.proposal import Proposal, render_proposals
from validator.report.text import printable, shortened
from validator.trajectory.layout import ENVIRONMENT
from validator.trajectory.seal import seal

_MOST_INDEX_BYTES = 1 << 20
_MOST_GOLDENS = 200


@dataclass(frozen=True, slots=True)
class Request:
    """What a maintainer asked for. ``commit`` is the head of the pull request that was launched."""

    pull: int
    commit: str
    requester: str
    reason: str


def commit_proposal(root: Path, repository: Repository, request: Request, places: Sequence[Path]) -> list[str]:
    """Put the proposed goldens on the pull request's branch, or for a fork on a branch that holds both.

    Returns lines that say what was done. Raises ``ValidatorError`` with one sentence where the pull request moved on,
    or where a golden breaks a rule; ``GitHubError`` where GitHub cannot be told.
    """
    pull = repository.pull(request.pull)
    head, base = pull["head"], str(pull["base"]["sha"])
    if pull["state"] != "open":
        raise UsageError(f"Pull request #{request.pull} is {pull['state']}; a re-baseline belongs to an open one.")
    own = (head.get("repo") or {}).get("full_name") == repository.name
    with tempfile.TemporaryDirectory() as temporary:
        folders = [_opened(place, Path(temporary) / f"proposal-{number}") for number, place in enumerate(places)]
        proposals, files, gone = _examined(root, folders, request, base, Path(temporary))
    body = render_proposals(proposals)
    message = _message(proposals, request)
    if own:
        branch = str(head["ref"])
        at = str(head["sha"])
        if at != request.commit and not _is_ours(repository, at, request.commit, message):
            raise UsageError(
                f"Pull request #{request.pull} is at {at[:12]} now, and {request.commit[:12]} was launched; ask again."
            )
        if at == request.commit:
            repository.move_branch(branch, _commit(repository, request.commit, message, files, gone))
        _comment(repository, request.pull, body)
        return [f"{len(proposals)} goldens committed to {branch} of #{request.pull}"]
    if str(head["sha"]) != request.commit:
        raise UsageError(
            f"Pull request #{request.pull} is at {str(head['sha'])[:12]} now, and {request.commit[:12]} was launched; "
            "ask again."
        )
    branch = f"rebaseline/pull-{request.pull}-{request.commit[:12]}"
    number = _on_own_branch(repository, request, str(pull["base"]["ref"]), branch, message, body, (files, gone))
    return [f"{len(proposals)} goldens and the change of #{request.pull} on branch {branch}, pull request #{number}"]


def _on_own_branch(
    repository: Repository, request: Request, base: str, branch: str, message: str, body: str,
    content: tuple[dict[str, bytes], list[str]],
) -> int:  # fmt: skip
    if repository.branch(branch) is None:
        commit = _commit(repository, request.commit, message, *content)
        repository.transport.once(lambda: repository.branch(branch), lambda: repository.create_branch(branch, commit))
    owner = repository.name.partition("/")[0]

    def find() -> Any:
        return next(iter(repository.pulls_from(f"{owner}:{branch}")), None)

    title = f"Re-baseline for #{request.pull}: {shortened(printable(request.reason), 120)}"
    text = f"Holds the change of #{request.pull} at {request.commit} and the goldens that go with it.\n\n{body}"
    found = repository.transport.once(find, lambda: repository.open_pull(title, branch, base, text))
    return int(found["number"])


def _opened(place: Path, folder: Path) -> Path:
    if place.is_file() and place.suffix == ".zip":
        unpack(place, folder)
    else:
        folder = place
    if not folder.is_dir():
        raise UsageError(f"{place} is no proposal; name the folder or zip that validator golden propose made.")
    check_folder(folder)
    return folder


def _examined(
    root: Path, folders: Sequence[Path], request: Request, base: str, scratch: Path
) -> tuple[list[Proposal], dict[str, bytes], list[str]]:
    """What is proposed, the files to commit by path, and the paths that go."""
    proposals: list[Proposal] = []
    files: dict[str, bytes] = {}
    gone: list[str] = []
    keys = [(folder, *key) for folder in folders for key in _keys(folder)]
    if len({key[1:] for key in keys}) != len(keys):
        raise ForgedResultError("Two proposals name the same pipeline and hardware class; give each once.")
    for number, (folder, pipeline, hardware_class) in enumerate(keys):
        store = GoldenStore(folder / "golden", follows_git=False)
        own, at_base, head = read_base_of(pipeline, root, base, scratch / f"base-{number}", request.commit)
        old = at_base.goldens.find(pipeline, hardware_class)
        off = own.policy.gates[Gate.RESUME] is Requirement.OFF
        new = valid_golden(store, pipeline, hardware_class, old, resume_is_off=off)
        _check_record(new, request)
        _check_resealed(new, scratch / f"seal-{number}")
        proposals.append(proposal_of(old, new))
        prefix = f"golden/{pipeline}/{hardware_class}"
        own_files = {f"{prefix}/{name}": (new.folder / name).read_bytes() for name in (RECORD, *new.record.files)}
        there = head.folder(pipeline, hardware_class)
        before = {f"{prefix}/{path.relative_to(there).as_posix()}" for path in there.rglob("*") if path.is_file()}
        files |= own_files
        gone += sorted(before - own_files.keys())
    return proposals, files, gone


def _keys(folder: Path) -> list[tuple[str, str]]:
    file = folder / INDEX
    try:
        if file.stat().st_size > _MOST_INDEX_BYTES:
            raise ForgedResultError(f"{file} is too large for an index.")
        goldens = json.loads(file.read_bytes())["goldens"]
        keys = [(str(pipeline), str(hardware_class)) for pipeline, hardware_class, _ in goldens]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ForgedResultError(f"{file} is no index of a proposal ({type(error).__name__}).") from error
    for pipeline, hardware_class in keys:
        for name in (pipeline, hardware_class):
            if not name or name.startswith(".") or "/" in name or not name.isprintable() or len(name) > 100:
                raise ForgedResultError(f"{file} names {name[:100]!r}, which is no pipeline or hardware class.")
    if not keys or len(keys) > _MOST_GOLDENS or len(set(keys)) != len(keys):
        raise ForgedResultError(f"{file} names {len(keys)} goldens; accepted are 1 to {_MOST_GOLDENS} different ones.")
    return keys


def _check_record(new: Golden, request: Request) -> None:
    record = new.record
    if (record.reason, record.requester) != (request.reason, request.requester):
        raise InvalidGoldenError(
            f"The record of {record.pipeline} gives {record.reason[:100]!r} and {record.requester[:100]!r}; "
            f"asked for was {request.reason[:100]!r} by {request.requester[:100]!r}."
        )
    files = [name for name in record.files if name != TRACE]
    unknown = [name for name in files if not name.startswith(f"{TRAJECTORY}/") or name.count("/") != 1]
    if unknown:
        raise InvalidGoldenError(f"The golden of {record.pipeline} holds {unknown[0][:100]!r}, which no golden has.")
    if new.trace is not None:
        try:
            read_trace(new.trace)
        except ValidatorError as error:
            raise InvalidGoldenError(f"The golden of {record.pipeline} has a trace that is none: {error}") from error


def _check_resealed(new: Golden, scratch: Path) -> None:
    """The trajectory's index and digests are those of its ranks' own files."""
    scratch.mkdir(parents=True)
    for file in (new.folder / TRAJECTORY).glob("rank-*"):
        shutil.copyfile(file, scratch / file.name)
    content = json.loads((new.folder / TRAJECTORY / ENVIRONMENT).read_bytes())
    try:
        root = seal(scratch, new.trajectory.header, content).root
    except ValidatorError as error:
        raise InvalidGoldenError(f"The golden of {new.record.pipeline} is forged: {error}") from error
    if root != new.trajectory.root:
        raise InvalidGoldenError(f"The golden of {new.record.pipeline} has another root than its ranks' files.")


def _commit(repository: Repository, parent: str, message: str, files: dict[str, bytes], gone: Sequence[str]) -> str:
    entries: list[dict[str, object]] = []
    for path, content in sorted(files.items()):
        blob = repository.create_blob(base64.b64encode(content).decode())
        entries.append({"path": path, "mode": "100644", "type": "blob", "sha": blob["sha"]})
    entries += [{"path": path, "mode": "100644", "type": "blob", "sha": None} for path in gone]
    tree = repository.create_tree(str(repository.commit(parent)["tree"]["sha"]), entries)
    commit = repository.create_commit({"message": message, "tree": tree["sha"], "parents": [parent]})
    return str(commit["sha"])


def _is_ours(repository: Repository, at: str, parent: str, message: str) -> bool:
    """The branch has this very commit already: the request was made before."""
    found = repository.commit(at)
    return [each["sha"] for each in found["parents"]] == [parent] and found["message"].strip() == message.strip()


def _comment(repository: Repository, pull: int, body: str) -> None:
    def find() -> Any:
        own = (each for each in repository.comments(pull) if (each.get("user") or {}).get("type") == "Bot")
        return next((each for each in own if each["body"].replace("\r\n", "\n").strip() == body.strip()), None)

    repository.transport.once(find, lambda: repository.create_comment(pull, body))


def _message(proposals: Sequence[Proposal], request: Request) -> str:
    names = ", ".join(f"{each.pipeline} on {each.hardware_class} ({each.digest[:12]})" for each in proposals)
    reason = shortened(printable(request.reason), 500)
    title = f"Re-baseline {len(proposals)} goldens for #{request.pull}"
    return f"{title}\n\n{reason}\n\nAsked for by {request.requester}: {names}\n"
