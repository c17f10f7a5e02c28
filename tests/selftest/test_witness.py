"""A launch's own account: read whole, compared where both sides have a moment, missing ones refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from validator.errors import LaunchError
from validator.selftest.witness import differ, read_account, touched_leaves


def write(folder: Path, rank: int, *lines: dict[str, str], cut: str = "") -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines) + cut
    (folder / f"witness-{rank:05d}.jsonl").write_text(text)


def test_accounts_differ_where_a_part_of_a_common_moment_does(tmp_path: Path) -> None:
    write(tmp_path, 0, {"moment": "setup:0", "model": "a"}, {"moment": "step:1", "model": "b"})
    write(tmp_path, 1, {"moment": "setup:0", "model": "c"}, cut='{"moment": "step:1", "mo')
    account = read_account(tmp_path, 2)
    assert account == {(0, "setup:0"): {"model": "a"}, (0, "step:1"): {"model": "b"}, (1, "setup:0"): {"model": "c"}}
    assert not differ(account, account)
    assert differ(account, {**account, (0, "step:1"): {"model": "x"}})
    assert not differ(account, {**account, (0, "step:2"): {"model": "x"}})


def test_a_rank_without_an_account_is_named(tmp_path: Path) -> None:
    write(tmp_path, 0, {"moment": "setup:0", "model": "a"})
    with pytest.raises(LaunchError, match="Rank 1 left no account"):
        read_account(tmp_path, 2)


@pytest.mark.parametrize("forged", [{"model": "a"}, {"moment": ["step:1"], "model": "a"}])
def test_an_account_without_a_moment_is_named(tmp_path: Path, forged: Any) -> None:
    write(tmp_path, 0, forged)
    with pytest.raises(LaunchError, match=r"witness-00000\.jsonl has a line without a moment"):
        read_account(tmp_path, 1)


def test_what_a_fault_touched_is_read_by_group_and_leaf(tmp_path: Path) -> None:
    assert touched_leaves(tmp_path, 1) == frozenset()
    line = '{"rank": 0, "step": 4, "group": "optimizer", "leaf": "w/exp_avg"}'
    (tmp_path / "touched-00000.jsonl").write_text(f'{line}\n[7]\n{{"cut')
    assert touched_leaves(tmp_path, 1) == {("optimizer", "w/exp_avg")}


def test_a_line_nested_without_end_says_nothing(tmp_path: Path) -> None:
    deep = "[" * 100_000
    write(tmp_path, 0, {"moment": "setup:0", "model": "a"}, cut=f"{deep}\n")
    assert read_account(tmp_path, 1) == {(0, "setup:0"): {"model": "a"}}
    (tmp_path / "touched-00000.jsonl").write_text(f'{deep}\n{{"group": "rng", "leaf": "cpu"}}\n')
    assert touched_leaves(tmp_path, 1) == {("rng", "cpu")}
