"""Every shipped pipeline passes against its shipped golden, and the upstream defects on resume are found and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import ROOT, Checked, check
from validator.compare import compare, resume_pairs
from validator.golden import GoldenStore
from validator.trajectory.groups import Moment

CLEAN = ("holds", "holds", "holds", "holds")

#: One rank, or all, that a waived defect was seen on: (leaf, restored step) -> ranks.
Seen = dict[tuple[str, int], set[int]]


def waived(checked: Checked) -> Seen:
    found: Seen = {}
    for finding in checked.report["waivers"]["seen"]:
        for place in finding["places"]:
            step = int(place.split(",")[0].removeprefix("restore "))
            found.setdefault((finding["leaf"], step), set()).update(finding["ranks"])
    return found


@pytest.mark.slow
def test_nemotron_cpu_passes_against_its_golden(sound: Checked) -> None:
    assert (sound.code, sound.verdict, sound.outcomes) == (0, "pass", CLEAN), sound.out
    assert sound.report["stamps"] == []
    (shipped,) = [each for each in GoldenStore(ROOT / "golden").list() if each.pipeline == "nemotron-cpu"]
    assert sound.report["golden"]["digest"] == shipped.digest
    assert sound.report["hardware_class"] == shipped.hardware_class
    assert sound.launches == ["reference", "resume-1", "resume-2", "resume-3"]
    assert sound.report["reproduce"] == "validator check nemotron-cpu"
    assert [step["step"] for step in sound.report["steps"]] == list(range(1, 11))


@pytest.mark.slow
def test_the_waived_defects_are_listed_with_rank_group_and_restore_point(sound: Checked) -> None:
    # Megatron keys the saved random states without the expert rank: rank 1 gets rank 0's. The data iterator's draw on a
    # restart moves the CPU's generator on every rank.
    assert waived(sound) == {
        ("rng/expert-parallel-rng", 3): {1}, ("rng/expert-parallel-rng", 6): {1},
        ("rng/cpu", 3): {0, 1}, ("rng/cpu", 6): {0, 1},
    }  # fmt: skip
    assert sound.report["waivers"]["unused"] == sound.report["waivers"]["expired"] == []
    told = sound.out[sound.out.index("Waived: 2 known defects") :]
    for words in ("rng/expert-parallel-rng", "rank 1, restore 3", "rank 1, restore 6"):
        assert words in told
    for words in ("rng/cpu", "ranks 0, 1, restore 3", "ranks 0, 1, restore 6"):
        assert words in told


@pytest.mark.slow
def test_with_dropout_a_resumed_run_equals_the_uninterrupted_one(sound: Checked) -> None:
    assert (sound.argument("hidden_dropout"), sound.argument("attention_dropout")) == ("0.1", "0.1")
    assert sound.gate("resume")["outcome"] == "holds"
    assert {finding["leaf"].split("/")[0] for finding in sound.report["waivers"]["seen"]} == {"rng"}
    assert sound.report["unexercised"] == []  # random numbers were drawn in every step


@pytest.mark.slow
def test_without_the_waiver_upstreams_defect_is_named_by_rank_and_generator_before_any_step(sound: Checked) -> None:
    reference, restored = sound.trajectory("reference"), sound.trajectory("resume-2")
    first = compare(reference, restored, resume_pairs(reference, restored, 3)).first
    assert first is not None
    assert (str(first.moment), first.rank, first.name) == ("setup:3", 1, "rng/expert-parallel-rng")
    # What a log shows of the same launches: not a bit.
    for step in (4, 5, 6):
        logged = [launch.metrics(1, Moment(step))["lm_loss"].bits for launch in (reference, restored)]
        assert logged[0] == logged[1]


@pytest.mark.slow
@pytest.mark.parametrize("launch", ["reference", "resume-3"])
def test_what_a_check_leaves_behind_can_be_read_again(sound: Checked, launch: str) -> None:
    trajectory = sound.trajectory(launch)
    assert (trajectory.header["pipeline"], trajectory.header["launch"]) == ("nemotron-cpu", launch)
    assert trajectory.moments[-1].step == 10
    assert trajectory.complete


@pytest.mark.parametrize("file", sorted((ROOT / "pipelines").glob("nemotron-cpu*.yaml")), ids=lambda file: file.stem)
def test_every_step_of_every_pipeline_compares_the_weights_of_its_replicas(file: Path) -> None:
    assert "--check-weight-hash-across-dp-replicas-interval 1\n" in file.read_text()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["nemotron-cpu-tp", "nemotron-cpu-pp", "nemotron-cpu-overlap", "nemotron-cpu-3d"])
def test_the_other_pipelines_pass_too(name: str, tmp_path: Path) -> None:
    ran = check(tmp_path, name)
    assert (ran.code, ran.verdict, ran.outcomes) == (0, "pass", CLEAN), ran.out
    assert ran.argument("check_weight_hash_across_dp_replicas_interval") == "1"
    assert {finding["leaf"].split("/")[0] for finding in ran.report["waivers"]["seen"]} == {"rng"}
    assert ran.report["waivers"]["unused"] == []
