from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.samples import VALID, WAIVER, without_waivers, write
from validator.errors import UsageError
from validator.pipeline import policy_changes, read_pipeline


def changes(tmp_path: Path, after: str, before: str = VALID) -> dict[str, tuple[str | None, str | None]]:
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
    old, new = (read_pipeline(write(folder, text)) for folder, text in zip(folders, (before, after), strict=True))
    return {each.key: (each.before, each.after) for each in policy_changes(old.policy, new.policy)}


def test_equal_policies_have_no_change(tmp_path: Path) -> None:
    assert changes(tmp_path, VALID.replace("seed: 1234", "seed: 99")) == {}


def test_a_gate_a_limit_and_a_save(tmp_path: Path) -> None:
    text = VALID.replace("golden: required", "golden: off").replace("launch_seconds: 300", "launch_seconds: 9000")
    text = without_waivers(text).replace("step: 6,", "step: 7,")
    found = changes(tmp_path, text, without_waivers(VALID))
    assert found == {
        "gates.golden": ("required", "off"),
        "launch_seconds": ("300", "9000"),
        "saves": tuple(f"step 3 mode synchronous, step {step} mode asynchronous" for step in (6, 7)),
    }  # fmt: skip


def test_a_waiver_that_is_added_removed_or_loosened(tmp_path: Path) -> None:
    key = "waivers.rng/expert-parallel-rng"
    (tmp_path / "a").mkdir()
    added = changes(tmp_path / "a", VALID, without_waivers(VALID))
    assert list(added) == [key]
    assert added[key][0] is None
    assert "until 2027-05-31" in str(added[key][1])
    (tmp_path / "b").mkdir()
    loosened = changes(tmp_path / "b", VALID.replace("2027-05-31", "2099-01-01"))
    assert list(loosened) == [key]
    assert WAIVER in VALID


def test_the_computation_comes_from_one_file_and_the_policy_from_another(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = write(tmp_path / "base", VALID.replace("golden: required", "golden: advisory"))
    head = write(tmp_path, VALID.replace("seed: 1234", "seed: 7"))
    found = read_pipeline(head, policy_from=base)
    assert found.computation.seed == 7
    assert str(found.policy.gates["golden"]) == "advisory"  # type: ignore[index]


def test_a_policy_that_does_not_fit_the_computation_names_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = write(tmp_path / "base", without_waivers(VALID))
    head = write(tmp_path, without_waivers(VALID).replace("steps: 10", "steps: 7").replace("step: 6", "step: 5"))
    with pytest.raises(UsageError) as caught:
        read_pipeline(head, policy_from=base)
    assert str(caught.value).startswith(f"{base}:")
