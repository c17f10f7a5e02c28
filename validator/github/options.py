"""What the commands about GitHub accept. Imports nothing: the parser is built at every start."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping


def _plan(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--base", metavar="REV", required=True, help="commit before the change")
    sub.add_argument("--head", metavar="REV", default="HEAD", help="commit with the change (default: HEAD)")
    sub.add_argument("--image", metavar="NAME@DIGEST", help="a new container image that was seen")
    sub.add_argument(
        "--pipelines",
        metavar="NAMES",
        default="called",
        help="these pipelines, separated by commas; 'all'; or those that the change calls for ('called')",
    )
    sub.add_argument("--json", metavar="FILE", help="write the plan as JSON, with the matrix for a workflow")
    sub.add_argument("--github-output", metavar="FILE", help="add base, head, called, matrix and findings as outputs")


def _connection(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--repository", metavar="OWNER/NAME", help="default: GITHUB_REPOSITORY")
    sub.add_argument("--api", metavar="URL", help="default: GITHUB_API_URL, or GitHub's public API")


def _publish(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("results", metavar="RESULT", nargs="*", help="folder, zip or report.json that a check left behind")
    _connection(sub)
    sub.add_argument("--event", metavar="FILE", help="payload of the workflow_run event (default: GITHUB_EVENT_PATH)")
    sub.add_argument("--head", metavar="REV", help="publish about this commit, without an event")
    sub.add_argument("--base", metavar="REV", default="HEAD", help="with --head: the commit before the change")
    sub.add_argument("--pull", metavar="N", type=int, help="with --head: the pull request to comment on")
    sub.add_argument("--download", metavar="DIR", help="fetch the run's results into this folder first, and keep them")


def _pack(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("out", metavar="OUT", help="the folder that a check was given as --out")
    sub.add_argument("target", metavar="TARGET", help="a folder that is not there yet")


def _rebaseline(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "proposals", metavar="PROPOSAL", nargs="+", help="folder or zip that validator golden propose made"
    )
    _connection(sub)
    sub.add_argument("--pull", metavar="N", type=int, required=True, help="the pull request that causes the new bits")
    sub.add_argument("--commit", metavar="SHA", required=True, help="the head that was launched")
    sub.add_argument("--requester", required=True, help="who asked for it")
    sub.add_argument("--reason", required=True, help="why these bits are right, in one line")


def _init(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--product", metavar="OWNER/NAME", required=True, help="repository of the validator's workflows")
    sub.add_argument("--commit", metavar="SHA", required=True, help="the validator's commit that the callers pin")
    sub.add_argument("--owners", metavar="@TEAM", required=True, help="who approves goldens, policy and workflows")
    sub.add_argument("--folder", metavar="DIR", default=".", help="the repository to set up (default: here)")


def add_doctor(sub: argparse.ArgumentParser) -> None:
    """``doctor --github`` beyond what ``doctor`` looks at on this machine."""
    sub.add_argument("--github", action="store_true", help="look at a repository's set-up on GitHub instead")
    _connection(sub)


def add_propose(sub: argparse.ArgumentParser) -> None:
    """``golden propose`` beyond the options of every command that launches."""
    sub.add_argument("--reason", required=True, help="why these bits are right, in one line")
    sub.add_argument("--requester", required=True, help="who asked for them")
    sub.add_argument("--approver", help="who vouches for them (default: the requester)")
    sub.add_argument("--change", help="what causes them: a pull request's address")
    sub.add_argument("--base", metavar="REV", required=True, help="commit whose goldens are replaced")
    sub.add_argument("--accept-drift", action="store_true", help="acknowledge that loss or gradient norm moved far")


OPTIONS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "plan": _plan,
    "init": _init,
    "github pack": _pack,
    "github publish": _publish,
    "github rebaseline": _rebaseline,
}
