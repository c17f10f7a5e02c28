"""The store in a real git work tree: supersedes, the chain, the log."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest

from tests.golden.samples import APPROVAL, HARDWARE, PIPELINE, trajectory
from validator.golden import Golden, GoldenStore, NoHistoryError, log, verify


class Work:
    """A git work tree with a store in it, and what a person does there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (folder / "README").write_text("work\n")
        self.commit("start", "2026-11-01")
        self.store = GoldenStore(folder / "golden")
        self.record_file = self.store.folder(PIPELINE, HARDWARE) / "golden.json"

    def git(self, *arguments: str, day: str = "2026-11-02", fails: bool = False) -> str:
        moment = f"{day}T12:00:00+00:00"
        who = {
            "GIT_AUTHOR_NAME": "Grace",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_DATE": moment,
        }
        mail = {"GIT_AUTHOR_EMAIL": "g@example.org", "GIT_COMMITTER_EMAIL": "a@example.org"}
        calm = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "true"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=os.environ | who | mail | calm,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stdout.strip()

    def commit(self, subject: str, day: str = "2026-11-02") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject, day=day)
        return self.git("rev-parse", "HEAD")

    def record(self, seed: int, reason: str = "because") -> Golden:
        approval = dataclasses.replace(APPROVAL, reason=reason)
        return self.store.write(trajectory(self.folder.parent, seed=seed), approval)

    def problems(self) -> tuple[str, ...]:
        return verify(self.store).problems


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


def test_each_version_names_the_one_before(work: Work) -> None:
    first = work.record(1)
    assert work.problems() == ()
    work.commit("first golden")
    second = work.record(2)
    assert second.record.supersedes == first.digest
    assert work.problems() == ()
    work.commit("second golden")
    assert work.problems() == ()


def test_recording_twice_before_a_commit_supersedes_what_was_committed(work: Work) -> None:
    first = work.record(1)
    work.commit("first golden")
    work.record(2)
    third = work.record(3)
    assert third.record.supersedes == first.digest
    work.commit("third golden")
    assert work.problems() == ()


def test_recording_twice_before_the_first_commit_supersedes_nothing(work: Work) -> None:
    work.record(1)
    assert work.record(2).record.supersedes is None


def test_a_store_that_git_ignores_supersedes_what_is_on_disk(work: Work) -> None:
    (work.folder / ".gitignore").write_text("golden/\n")
    work.commit("ignore goldens")
    first = work.record(1)
    assert work.record(2).record.supersedes == first.digest


def test_drift_is_against_what_was_committed(work: Work) -> None:
    work.store.write(trajectory(work.folder.parent, (4.0,)), APPROVAL)
    work.commit("first golden")
    work.store.write(trajectory(work.folder.parent, (4.1,)), APPROVAL)
    again = work.store.write(trajectory(work.folder.parent, (4.0,), seed=9), APPROVAL)
    assert again.record.drift["lm_loss"].largest == 0.0


def test_a_gap_in_the_history_is_named(work: Work) -> None:
    work.record(1)
    work.commit("first golden")
    foreign = GoldenStore(work.folder.parent / "elsewhere").write(trajectory(work.folder.parent, seed=2), APPROVAL)
    for path in work.record_file.parent.rglob("*"):
        if path.is_file():
            path.write_bytes((foreign.folder / path.relative_to(work.record_file.parent)).read_bytes())
    (before,) = work.problems()
    assert "in the work tree supersedes none and replaces" in before
    commit = work.commit("a golden from elsewhere")
    (after,) = work.problems()
    assert f"in commit {commit[:12]} supersedes none and replaces" in after
    work.record(3)
    work.commit("a sound golden on top")
    assert len(work.problems()) == 1


def test_a_revert_returns_to_what_was_approved(work: Work) -> None:
    first = work.record(1)
    work.commit("first golden")
    work.record(2)
    work.commit("second golden")
    work.git("revert", "--no-edit", "HEAD")
    assert work.problems() == ()
    third = work.record(3)
    assert third.record.supersedes == first.digest
    work.commit("third golden")
    assert work.problems() == ()


def branches(work: Work) -> Golden:
    """Main with a first golden, and a branch ``change`` that replaces it."""
    first = work.record(1)
    work.commit("first golden")
    work.git("checkout", "-q", "-b", "change")
    work.record(2)
    work.commit("golden of the change")
    work.git("checkout", "-q", "main")
    return first


@pytest.mark.parametrize("how", ["--no-ff", "--squash"])
def test_a_change_with_two_goldens_keeps_the_chain_merged_or_squashed(work: Work, how: str) -> None:
    first = branches(work)
    work.git("checkout", "-q", "change")
    third = work.record(3)
    work.commit("another golden of the change")
    work.git("checkout", "-q", "main")
    (work.folder / "README").write_text("meanwhile\n")
    work.commit("meanwhile")
    work.git("merge", "-q", how, "-m", "merge", "change")
    if how == "--squash":
        work.commit("squashed")
    assert third.record.lineage[1] == first.digest
    assert work.problems() == ()


def take_theirs(work: Work, branch: str) -> str:
    """Merge ``branch`` into the current one, with its golden."""
    work.git("merge", "-q", "-s", "ours", "--no-ff", "-m", f"merge {branch}", branch)
    work.git("checkout", "-q", branch, "--", "golden")
    work.git("commit", "-q", "--amend", "-m", f"merge {branch}, its golden")
    return work.git("rev-parse", "HEAD")


def test_a_merge_that_drops_the_golden_of_main_is_named(work: Work) -> None:
    branches(work)
    work.record(4)
    work.commit("golden of main")
    commit = take_theirs(work, "change")
    (problem,) = work.problems()
    assert f"in commit {commit[:12]}" in problem


def test_a_change_that_takes_the_golden_of_main_and_records_on_top_is_sound(work: Work) -> None:
    branches(work)
    main = work.record(4)
    work.commit("golden of main")
    work.git("checkout", "-q", "change")
    assert len(verify(work.store, base="main").problems) == 1
    take_theirs(work, "main")
    again = work.record(5)
    work.commit("recorded again")
    assert again.record.supersedes == main.digest
    assert verify(work.store, base="main").problems == ()
    work.git("checkout", "-q", "main")
    work.git("merge", "-q", "--no-ff", "-m", "merge", "change")
    assert work.problems() == ()


def test_a_base_that_there_is_not_is_refused(work: Work) -> None:
    work.record(1)
    for base in ("nowhere", "--all"):
        with pytest.raises(NoHistoryError, match=r"git log failed"):
            verify(work.store, base=base)


def test_a_record_that_was_broken_in_the_past_is_named(work: Work) -> None:
    work.record(1)
    text = work.record_file.read_text()
    work.record_file.write_text(text + " ")
    commit = work.commit("a broken golden")
    work.record_file.write_text(text)
    work.commit("repaired")
    (problem,) = work.problems()
    assert f"no valid record in commit {commit[:12]}" in problem


def test_a_shallow_clone_is_checked_as_far_as_it_goes(work: Work, tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        work.record(seed)
        work.commit(f"golden {seed}")
    work.git("clone", "-q", "--depth", "1", f"file://{work.folder}", str(tmp_path / "clone"))
    result = verify(GoldenStore(tmp_path / "clone" / "golden"))
    assert result.problems == ()
    assert any("shallow" in remark for remark in result.remarks)


def test_the_log_tells_who_why_and_which_bits(work: Work) -> None:
    first = work.record(1, "the first")
    one = work.commit("first golden", "2026-11-03")
    second = work.record(2, "a new kernel")
    two = work.commit("second golden", "2026-11-04")
    (work.folder / "README").write_text("no golden\n")
    work.commit("something else")
    versions = log(work.store, PIPELINE, HARDWARE)
    assert [version.commit.identity for version in versions] == [two, one]
    assert [version.commit.date[:10] for version in versions] == ["2026-11-04", "2026-11-03"]
    assert {version.commit.author for version in versions} == {"Grace"}
    assert [version.record for version in versions] == [second.record, first.record]
    assert versions[0].commit.subject == "second golden"


def test_the_log_of_a_golden_that_was_removed(work: Work) -> None:
    work.record(1)
    work.commit("first golden")
    work.git("rm", "-q", "-r", "golden")
    work.commit("no golden")
    versions = log(GoldenStore(work.folder), PIPELINE, HARDWARE)
    assert versions == ()
    work.store.root.mkdir()
    assert [version.record is None for version in log(work.store, PIPELINE, HARDWARE)] == [True, False]


def test_outside_a_work_tree_files_alone_are_checked(tmp_path: Path) -> None:
    store = GoldenStore(tmp_path / "golden")
    store.write(trajectory(tmp_path), APPROVAL)
    result = verify(store)
    assert result.holds
    assert any("History is not checked" in remark for remark in result.remarks)
    with pytest.raises(NoHistoryError):
        log(store, PIPELINE, HARDWARE)
    with pytest.raises(NoHistoryError):
        log(GoldenStore(tmp_path / "missing"), PIPELINE, HARDWARE)


def test_the_callers_git_variables_do_not_mislead(work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    work.record(1)
    work.commit("first golden")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert verify(work.store).remarks == ()
    assert len(log(work.store, PIPELINE, HARDWARE)) == 1
