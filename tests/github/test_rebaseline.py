"""Proposing goldens and committing them to the pull request that causes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.github.hub import Hub
from tests.project import Ran

REASON = "new kernel, see pull request 7"
CHANGED = {"diverge": {"step": 4}}


@pytest.fixture(scope="session")
def proposal_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves a proposal for the others: its launches are the same."""
    return tmp_path_factory.mktemp("proposal") / "proposal"


@pytest.fixture
def proposed(hub: Hub, proposal_once: Path) -> Path:
    """A change of numerics on the work tree's branch, and the goldens proposed for it."""
    hub.repo.write("constraints.txt", "torch==2.15.0\n")
    hub.repo.commit("another kernel")
    hub.project.double.misbehave(every=CHANGED)
    folder = hub.project.folder.parent / "proposal"
    if not proposal_once.exists():
        ran = propose(hub, folder)
        assert ran.code == 0, ran.err
        shutil.rmtree(folder / "work")
        shutil.copytree(folder, proposal_once)
    else:
        shutil.copytree(proposal_once, folder)
    return folder


def propose(hub: Hub, folder: Path, *words: str) -> Ran:
    options = ("--base", "main", "--reason", REASON, "--requester", "Grace", "--accept-drift", *words)
    python = ("--python", str(hub.project.double.python), "--out", str(folder))
    return hub.project.run("golden", "propose", "tiny", *options, *python)


def rebaseline(hub: Hub, pull: dict[str, Any], proposal: Path, **changes: str) -> Ran:
    values = {
        "pull": str(pull["number"]),
        "commit": pull["head"]["sha"],
        "requester": "Grace",
        "reason": REASON,
    } | changes
    words = [word for name, value in values.items() for word in (f"--{name}", value)]
    ran = hub.project.run("github", "rebaseline", str(proposal), *words)
    assert hub.double.bad == []
    return ran


def test_the_commit_has_the_right_tree_and_the_next_check_is_rebaselined(hub: Hub, proposed: Path) -> None:
    pull = hub.pull()
    ran = rebaseline(hub, pull, proposed)
    assert (ran.code, ran.out) == (0, f"1 goldens committed to change of #{pull['number']}\n"), ran.err
    hub.repo.git("fetch", "-q", "origin")
    hub.repo.git("merge", "-q", "--ff-only", "origin/change")
    assert hub.repo.git("rev-parse", "HEAD^") == pull["head"]["sha"]
    names = hub.repo.git("diff", "--name-only", "HEAD^").splitlines()
    assert all(name.startswith("golden/tiny/cpu-") for name in names)
    (record,) = hub.project.goldens.glob("tiny/*/golden.json")
    content = json.loads(record.read_text())
    assert (content["requester"], content["approver"], content["reason"]) == ("Grace", "Grace", REASON)
    message = hub.repo.git("log", "-1", "--format=%B")
    assert f"for #{pull['number']}" in message
    assert REASON in message
    checked = hub.project.check("--base", "main")
    assert (checked.code, checked.verdict) == (0, "rebaselined")
    (body,) = hub.comments
    for words in (REASON, "Grace", "Metrics, old and new", "First divergence", "largest relative move"):
        assert words in body


def test_asking_twice_and_losing_answers_doubles_nothing(hub: Hub, proposed: Path) -> None:
    pull = hub.pull()
    lost: set[tuple[str, str]] = set()

    def lose_each_first(method: str, path: str, count: int) -> str | None:
        if (method, path) in lost or method == "GET":
            return None
        lost.add((method, path))
        return "drop after"

    hub.double.trouble = lose_each_first
    assert rebaseline(hub, pull, proposed).code == 0
    hub.double.trouble = lambda method, path, count: None
    head = hub.double.state.pull(pull["number"])["head"]["sha"]
    assert rebaseline(hub, pull, proposed, commit=hub.repo.git("rev-parse", "HEAD")).code == 0
    assert hub.double.state.pull(pull["number"])["head"]["sha"] == head
    assert len(hub.comments) == 1
    assert hub.repo.git("ls-remote", "origin", "refs/heads/change").split()[0] == head


def test_a_fork_gets_a_branch_that_holds_both(hub: Hub, proposed: Path) -> None:
    pull = hub.pull("patch", fork="mallory/train")
    ran = rebaseline(hub, pull, proposed)
    assert ran.code == 0, ran.err
    again = rebaseline(hub, pull, proposed)
    assert again.out == ran.out
    (own,) = [each for each in hub.double.state.pulls if each["head"]["repo"]["full_name"] == "team/train"]
    assert own["head"]["ref"] == f"rebaseline/pull-{pull['number']}-{pull['head']['sha'][:12]}"
    assert f"#{pull['number']}" in own["title"]
    assert "Metrics, old and new" in own["body"]
    hub.repo.git("fetch", "-q", "origin", own["head"]["ref"])
    assert hub.repo.git("rev-parse", "FETCH_HEAD^") == pull["head"]["sha"]


def test_a_pull_request_that_moved_on_is_refused(hub: Hub, proposed: Path) -> None:
    pull = hub.pull()
    before = pull["head"]["sha"]
    hub.repo.commit("pushed in between")
    hub.push("change")
    ran = rebaseline(hub, pull, proposed, commit=before)
    assert ran.code == 2
    assert f"and {before[:12]} was launched; ask again" in ran.err


def test_a_closed_pull_request_is_refused(hub: Hub, proposed: Path) -> None:
    pull = hub.pull()
    pull["state"] = "closed"
    ran = rebaseline(hub, pull, proposed)
    assert (ran.code, "is closed" in ran.err) == (2, True)


def edited_record(folder: Path) -> None:
    (record,) = folder.glob("golden/tiny/*/golden.json")
    record.write_text(record.read_text().replace(REASON, "something else"))


def flipped_byte(folder: Path) -> None:
    (leaves,) = folder.glob("golden/tiny/*/trajectory/rank-00001.leaves")
    content = bytearray(leaves.read_bytes())
    content[5] ^= 1
    leaves.write_bytes(content)


def a_link(folder: Path) -> None:
    (record,) = folder.glob("golden/tiny/*/golden.json")
    record.unlink()
    record.symlink_to("/etc/hostname")


def another_place(folder: Path) -> None:
    index = json.loads((folder / "proposal.json").read_text())
    index["goldens"] = [["../../.github", "workflows", "0"]]
    (folder / "proposal.json").write_text(json.dumps(index))


def an_extra_file(folder: Path) -> None:
    (record,) = folder.glob("golden/tiny/*/golden.json")
    (record.parent / "run.sh").write_text("echo hello\n")


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (edited_record, "was edited after it was recorded"),
        (flipped_byte, "was edited or truncated"),
        (a_link, "a link or a special file"),
        (another_place, "which is no pipeline or hardware class"),
        (an_extra_file, "does not belong to the golden"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_forged_proposal_is_refused(hub: Hub, proposed: Path, forge: Any, sentence: str) -> None:
    pull = hub.pull()
    forge(proposed)
    ran = rebaseline(hub, pull, proposed)
    assert ran.code == 3
    assert sentence in ran.err
    assert hub.double.writes() == []


def test_another_reason_than_the_one_that_was_given_is_refused(hub: Hub, proposed: Path) -> None:
    ran = rebaseline(hub, hub.pull(), proposed, reason="trust me")
    assert ran.code == 3
    assert "asked for was 'trust me' by 'Grace'" in ran.err


def test_nothing_new_is_nothing_to_propose(hub: Hub) -> None:
    ran = propose(hub, hub.project.folder.parent / "proposal")
    assert ran.code == 2
    assert "there is nothing to re-baseline" in ran.err


def test_a_large_drift_must_be_acknowledged(hub: Hub) -> None:
    hub.project.double.misbehave(every={"diverge": {"step": 4}, "jump": 3.0})
    options = ("--base", "main", "--reason", REASON, "--requester", "Grace")
    python = ("--python", str(hub.project.double.python), "--out", str(hub.project.folder.parent / "proposal"))
    ran = hub.project.run("golden", "propose", "tiny", *options, *python)
    assert ran.code == 2
    assert "--accept-drift" in ran.err
