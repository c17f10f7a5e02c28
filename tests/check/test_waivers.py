"""Waivers: as narrow as they are written, and never silent."""

from __future__ import annotations

from datetime import date

from validator.check.waivers import WaiverBook
from validator.comparison import Divergence
from validator.pipeline import Sighting, Span, Waiver
from validator.trajectory.differences import Kind
from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.leaves import LeafKey

WRONG, OTHER = "ab" * 16, "cd" * 16
STEP = Moment(4)
TODAY = date(2026, 11, 29)


def waiver(expires: date = date(2027, 5, 31), restores: tuple[int, ...] = (3,)) -> Waiver:
    seen = tuple(Sighting(step, (1,), Span.parse(f"setup:{step} .. end"), WRONG) for step in restores)
    return Waiver("resume", Group.RNG, "expert", seen, "known", "https://example.org", expires)


def found(
    moment: Moment = STEP, rank: int = 1, leaf: str = "expert", observed: str = WRONG, kind: Kind = Kind.LEAF
) -> Divergence:
    key = LeafKey(leaf, "bytes", ())
    return Divergence(kind, moment, moment, rank, Group.RNG, key, key, OTHER, observed)


def book(*waivers: Waiver) -> WaiverBook:
    return WaiverBook("resume", waivers or (waiver(),), TODAY)


def test_the_leaf_at_its_place_with_its_wrong_digest_is_waived() -> None:
    one = book()
    assert one.judge(3, found()) == "rng/expert"
    assert one.judge(3, found(Moment(3, Phase.SETUP))) == "rng/expert"
    (entry,) = one.waived()
    assert (entry.leaf, entry.ranks, entry.observed) == ("rng/expert", (1,), WRONG)
    assert entry.places == ("restore 3, setup:3 .. end",)
    assert one.unused() == ()
    assert one.suggestion() == ""


def test_anything_else_is_not() -> None:
    one = book()
    assert one.judge(6, found()) is None
    assert one.judge(3, found(rank=0)) is None
    assert one.judge(3, found(leaf="cpu")) is None
    assert one.judge(3, found(observed=OTHER)) is None
    assert one.judge(3, found(kind=Kind.RENAMED)) is None
    assert one.judge(3, found(kind=Kind.MISSING_LEAF, observed="")) is None
    assert one.waived() == ()


def test_another_wrong_digest_is_said() -> None:
    one = book()
    one.judge(3, found(observed=OTHER))
    (line,) = one.contradicted()
    assert OTHER in line
    assert "rng/expert" in line


def test_an_expired_waiver_waives_nothing_and_is_reported() -> None:
    one = book(waiver(expires=date(2026, 11, 28)))
    assert one.judge(3, found()) is None
    assert one.expired() == ("rng/expert expired on 2026-11-28",)
    assert one.unused() == ()


def test_it_holds_on_its_last_day() -> None:
    assert book(waiver(expires=TODAY)).judge(3, found()) == "rng/expert"


def test_sightings_that_were_not_seen_are_reported() -> None:
    one = book(waiver(restores=(3, 6)))
    one.judge(3, found())
    (line,) = one.unused()
    assert line.startswith("rng/expert: restore 6")


def test_what_was_found_can_be_pasted() -> None:
    one = book(waiver(restores=(9,)))
    one.compared[3] = [Moment(3, Phase.SETUP), Moment(4)]
    one.judge(3, found(Moment(4)))
    assert f'observed: "{WRONG}"' in one.suggestion()
    assert "expires: 2027-05-28" in one.suggestion()


def test_a_broken_run_is_not_offered_for_waiving() -> None:
    one = book()
    for number in range(9):
        one.judge(3, found(leaf=f"leaf{number}"))
    assert one.suggestion() == ""
