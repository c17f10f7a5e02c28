"""The commands about GitHub; each imports what it needs when it runs."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from validator.errors import UsageError

if TYPE_CHECKING:
    from validator.github.event import Change
    from validator.github.repository import Repository

_PUBLIC = "https://api.github.com"


def plan(options: argparse.Namespace) -> int:
    """Say which pipelines a change calls for, as text and as a matrix for a workflow."""
    import json

    from validator.check.out import write_whole
    from validator.errors import LaunchError
    from validator.github.plan import make_plan

    made = make_plan(project_root(), options.base, options.head, options.image, options.pipelines)
    print("\n".join(made.lines()))
    if options.json:
        write_whole(Path(options.json), json.dumps(made.document(), indent=2) + "\n")
    if options.github_output:
        try:
            with Path(options.github_output).open("a", encoding="utf-8") as file:
                file.write(made.outputs())
        except OSError as error:
            raise LaunchError(f"{options.github_output} cannot be written ({error.strerror}).") from error
    return 0


def publish(options: argparse.Namespace) -> int:
    """Publish results as check runs and one comment; trajectories are compared anew first."""
    from datetime import UTC, datetime

    _need_extra()
    from validator.github.errors import GitHubError
    from validator.github.publish import publish as do
    from validator.github.supersede import cancel_older

    repository = connect(options)
    change = _change(options, repository)
    results = [Path(each) for each in options.results]
    refused: list[str] = []
    kept = ", ".join(map(str, results)) or "the run"
    try:
        if options.download and change.state == "completed":
            found, refused = _download(repository, change, Path(options.download))
            results += found
            kept = options.download
        lines = do(project_root(), repository, change, results, datetime.now(UTC).date(), refused)
        lines += cancel_older(repository, change) if change.state == "queued" else []
    except GitHubError as error:
        raise GitHubError(f"{error} Results are kept in {kept}: run validator github publish again.") from error
    print("\n".join(lines))
    return 0


def pack(options: argparse.Namespace) -> int:
    """Copy what publishing needs out of a check's folder, as plain files."""
    from validator.github.pack import pack as do

    print(f"{options.target}: {do(Path(options.out), Path(options.target))} files")
    return 0


def rebaseline(options: argparse.Namespace) -> int:
    """Commit proposed goldens to the pull request that causes them."""
    _need_extra()
    from validator.github.rebaseline import Request, commit_proposal

    request = Request(options.pull, options.commit, options.requester, options.reason)
    places = [Path(each) for each in options.proposals]
    print("\n".join(commit_proposal(project_root(), connect(options), request, places)))
    return 0


def init(options: argparse.Namespace) -> int:
    """Set a repository up: caller workflows, CODEOWNERS, a first pipeline, a description of the ruleset."""
    from validator.github.init import set_up

    for line in set_up(Path(options.folder), options.product, options.commit, options.owners):
        print(line)
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Say what of the set-up on GitHub is missing in a repository; exit 3 where something is."""
    _need_extra()
    from validator.github.doctor import FINE, MISSING, examine
    from validator.report.text import printable

    found = examine(connect(options))
    for finding in found:
        print(f"{finding.state:8} {finding.name:18} {printable(finding.found)}")
        if finding.advice:
            print(f"{'':27} {finding.advice}")
    missing = sum(finding.state == MISSING for finding in found)
    fine = sum(finding.state == FINE for finding in found)
    print(f"{fine} fine, {missing} missing, {len(found) - fine - missing} not to be seen. docs/github.md says how.")
    return 3 if missing else 0


def connect(options: argparse.Namespace) -> Repository:
    """The repository that options or variables name, with the credentials of the variables."""
    from validator.github.credentials import credentials_from
    from validator.github.repository import Repository
    from validator.github.transport import Transport

    name = options.repository or os.environ.get("GITHUB_REPOSITORY", "")
    if not name:
        raise UsageError("No repository is named; give --repository OWNER/NAME or set GITHUB_REPOSITORY.")
    url = options.api or os.environ.get("GITHUB_API_URL") or _PUBLIC
    return Repository(Transport(url, credentials_from(os.environ, name)), name)


def project_root() -> Path:
    """The project around the working directory; the working directory where there is none yet."""
    here = Path.cwd()
    return next((place for place in (here, *here.parents) if (place / "pipelines").is_dir()), here)


def _need_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("github3", "requests") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} not found; to speak to GitHub, install megatron-change-validator[github]."
        )


def _change(options: argparse.Namespace, repository: Repository) -> Change:
    from validator.github.event import Change, change_of, read_event
    from validator.golden.history import Repository as History

    history = History.around(project_root())
    if options.head:
        head, base = history.resolve(options.head), history.resolve(options.base)
        return Change(head, base, options.pull, 0, 1, "completed", "", "")
    file = options.event or os.environ.get("GITHUB_EVENT_PATH")
    if not file:
        raise UsageError("There is no event; give --event FILE, or --head REV and --base REV.")
    return change_of(read_event(Path(file)), repository, history.resolve("HEAD"))


def _download(repository: Repository, change: Change, folder: Path) -> tuple[list[Path], list[str]]:
    """The run's results as zips, and a sentence for each that is not taken."""
    from validator.github import limits
    from validator.github.errors import ForgedResultError

    refused = []
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    for artifact in repository.artifacts(change.run):
        if str(artifact["name"]).startswith("validator-result-") and not artifact.get("expired"):
            place = folder / f"{int(artifact['id'])}.zip"
            try:
                place.write_bytes(repository.artifact(int(artifact["id"]), limits.MOST_BYTES))
            except ForgedResultError as error:
                refused.append(str(error))
                continue
            places.append(place)
    return places, refused


COMMANDS = {"plan": plan, "init": init, "github pack": pack, "github publish": publish, "github rebaseline": rebaseline}
