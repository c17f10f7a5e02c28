"""What a waiver covers, and the YAML that is suggested for a finding."""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.samples import DIGEST, VALID, write
from tests.project import written_out
from validator.errors import UsageError
from validator.pipeline import Finding, Sighting, Span, Waiver, load_pipeline, suggest_waivers
from validator.pipeline.suggest import sightings_of
from validator.trajectory.groups import Group, Moment, Phase

OTHER = "f" * 32
EXPIRES = date(2027, 5, 31)


def segment(restore: int, last: int) -> list[Moment]:
    steps = [Moment(step) for step in range(restore + 1, last + 1)]
    return [Moment(restore, Phase.SETUP), Moment(restore, Phase.ENTRY), *steps]


COMPARED = {3: segment(3, 8), 6: segment(6, 10)}


def finding(
    moment: str, rank: int = 1, restore: int = 3, leaf: str = "expert-parallel-rng", observed: str = DIGEST
) -> Finding:
    return Finding("resume", restore, Moment.parse(moment), rank, Group.RNG, leaf, observed)


def expert_rng_defect() -> list[Finding]:
    """Upstream defect 1: rank 1 has rank 0's state from the restore on."""
    return [finding(str(moment), 1, restore) for restore, moments in COMPARED.items() for moment in moments]


def loader_draw_defect() -> list[Finding]:
    """Upstream defect 2: both ranks' CPU generator has moved by a draw before the first step, not at the restore."""
    return [
        finding(str(moment), rank, restore, "cpu", OTHER)
        for rank in (0, 1)
        for restore, moments in COMPARED.items()
        for moment in moments[1:]
    ]


@pytest.fixture
def waiver(tmp_path: Path) -> Waiver:
    (waiver,) = load_pipeline(write(tmp_path, VALID), tmp_path).policy.waivers
    return waiver


def test_covers_its_leaf_at_its_places_with_its_digest(waiver: Waiver) -> None:
    assert all(map(waiver.covers, expert_rng_defect()))
    assert waiver.unseen(expert_rng_defect()) == ()
    assert [sighting.restore for sighting in waiver.unseen([finding("setup:3")])] == [6]


@pytest.mark.parametrize(
    "change",
    [
        {"gate": "golden"},
        {"group": Group.PARAMETERS},
        {"leaf": "cpu"},
        {"rank": 0},
        {"restore": 0},
        {"observed": OTHER},
        {"moment": Moment(3)},
        {"moment": Moment(2, Phase.ENTRY)},
    ],
)
def test_covers_nothing_else(waiver: Waiver, change: dict[str, object]) -> None:
    seen = finding("setup:3")
    assert waiver.covers(seen)
    assert not waiver.covers(dataclasses.replace(seen, **change))


def test_another_digest_at_its_place_contradicts_it(waiver: Waiver) -> None:
    assert waiver.contradicts(finding("entry:3", observed=OTHER))
    assert not waiver.contradicts(finding("entry:3"))
    assert not waiver.contradicts(finding("entry:3", rank=0, observed=OTHER))


def test_holds_through_its_last_day(waiver: Waiver) -> None:
    assert not waiver.expired(EXPIRES)
    assert waiver.expired(EXPIRES + timedelta(days=1))


@pytest.mark.parametrize("text", ["setup:3", "entry:3 .. end", "setup:3 .. step:5"])
def test_spans_read_as_they_are_written(text: str) -> None:
    assert str(Span.parse(text)) == text
    assert Span.parse(text.replace(" .. ", "..")) == Span.parse(text)


@pytest.mark.parametrize(
    "text", ["", "step", "step:3 ..", "end", ".. end", "entry:3 .. setup:3", "step:3 step:4", "step:-1"]
)
def test_no_spans(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Span.parse(text)


def test_the_two_upstream_defects_are_suggested_as_narrowly_as_they_were_seen() -> None:
    text = suggest_waivers([*expert_rng_defect(), *loader_draw_defect()], COMPARED, EXPIRES)
    assert yaml.safe_load(text) == [
        {
            "gate": "resume",
            "leaf": "rng/expert-parallel-rng",
            "seen": [
                {"restore": 3, "ranks": [1], "moments": "setup:3 .. end", "observed": DIGEST},
                {"restore": 6, "ranks": [1], "moments": "setup:6 .. end", "observed": DIGEST},
            ],
            "reason": "WRITE HERE what is broken upstream, and why it does no harm",
            "link": "https://WRITE-HERE-where-it-is-reported",
            "expires": EXPIRES,
        },
        {
            "gate": "resume",
            "leaf": "rng/cpu",
            "seen": [
                {"restore": 3, "ranks": [0, 1], "moments": "entry:3 .. end", "observed": OTHER},
                {"restore": 6, "ranks": [0, 1], "moments": "entry:6 .. end", "observed": OTHER},
            ],
            "reason": "WRITE HERE what is broken upstream, and why it does no harm",
            "link": "https://WRITE-HERE-where-it-is-reported",
            "expires": EXPIRES,
        },
    ]


def test_a_suggestion_can_be_pasted_and_covers_what_it_was_made_from(tmp_path: Path) -> None:
    found = [*expert_rng_defect(), *loader_draw_defect()]
    text = "".join(f"    {line}\n" for line in written_out(suggest_waivers(found, COMPARED, EXPIRES)).splitlines())
    pipeline = load_pipeline(write(tmp_path, VALID[: VALID.index("    - gate")] + text), tmp_path)
    assert all(any(waiver.covers(one) for waiver in pipeline.policy.waivers) for one in found)
    assert not any(
        waiver.covers(finding("setup:3", 0, leaf="cpu", observed=OTHER)) for waiver in pipeline.policy.waivers
    )


@pytest.mark.parametrize("key", ["reason", "link"])
def test_a_suggestion_that_nobody_completed_is_refused(tmp_path: Path, key: str) -> None:
    whole = written_out(suggest_waivers(expert_rng_defect(), COMPARED, EXPIRES)).splitlines()
    raw = suggest_waivers(expert_rng_defect(), COMPARED, EXPIRES).splitlines()
    lines = [old if old.strip().startswith(f"{key}:") else new for old, new in zip(raw, whole, strict=True)]
    text = "".join(f"    {line}\n" for line in lines)
    with pytest.raises(UsageError, match=rf"{key} is still what a check suggests; write it"):
        load_pipeline(write(tmp_path, VALID[: VALID.index("    - gate")] + text), tmp_path)


def test_nothing_found_suggests_nothing() -> None:
    assert suggest_waivers([], COMPARED, EXPIRES) == ""


def test_a_gap_a_single_last_moment_and_a_change_of_digest_make_places_of_their_own() -> None:
    found = [
        finding("setup:3"),
        finding("step:4"),
        finding("step:5"),
        finding("step:6", observed=OTHER),
        finding("step:8"),
    ]
    assert [(str(s.moments), s.observed) for s in sightings_of(found, COMPARED)] == [
        ("setup:3", DIGEST),
        ("step:4 .. step:5", DIGEST),
        ("step:6", OTHER),
        ("step:8", DIGEST),
    ]


@settings(deadline=None)
@given(
    st.sets(
        st.tuples(st.sampled_from([3, 6]), st.integers(0, 5), st.integers(0, 1), st.sampled_from([DIGEST, OTHER])),
        min_size=1,
    )
)
def test_sightings_cover_exactly_what_was_found(chosen: set[tuple[int, int, int, str]]) -> None:
    everything = {
        (restore, moment, rank, observed): finding(str(moment), rank, restore, observed=observed)
        for restore, moments in COMPARED.items()
        for moment in moments
        for rank in (0, 1)
        for observed in (DIGEST, OTHER)
    }
    found = [
        everything[restore, COMPARED[restore][position], rank, observed]
        for restore, position, rank, observed in chosen
        if position < len(COMPARED[restore])
    ]
    seen: tuple[Sighting, ...] = sightings_of(found, COMPARED)
    covered = {one for one in everything.values() if any(sighting.covers(one) for sighting in seen)}
    assert covered == set(found)
