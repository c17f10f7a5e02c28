"""The search for a smallest flip: it ends, what it returns flips, and nothing can be left out of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validator.diagnose.bisect.search import Answer, expected_tests, smallest_flip


class Asked:
    """Answers tests from a rule, and notes them."""

    def __init__(self, rule) -> None:
        self.rule = rule
        self.subsets: list[frozenset[int]] = []
        self.left: list[int] = []

    def __call__(self, subset: frozenset[int], left: int) -> Answer:
        assert subset not in self.subsets, "a set is tested twice"
        self.subsets.append(subset)
        self.left.append(left)
        answer: Answer = self.rule(subset)
        return answer


def monotone(culprits: frozenset[int], unresolved=frozenset()):
    """Whatever holds all culprits differs; sets in ``unresolved`` have no answer."""

    def rule(subset: frozenset[int]) -> Answer:
        if subset in unresolved:
            return Answer.UNRESOLVED
        return Answer.DIFFERS if culprits <= subset else Answer.SAME

    return rule


@given(st.data(), st.integers(1, 40))
def test_one_culprit_takes_a_logarithmic_number_of_tests(data: st.DataObject, count: int) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    asked = Asked(monotone(frozenset({culprit})))
    assert smallest_flip(range(count), asked) == {culprit}
    both_ends = 2  # launched before the search
    assert len(asked.subsets) + both_ends <= 2 * math.ceil(math.log2(count)) + 2
    assert len(asked.subsets) <= expected_tests(count)
    assert all(left >= 1 for left in asked.left)


@given(st.data(), st.integers(2, 40))
def test_a_pair_is_found_as_a_pair_in_few_tests(data: st.DataObject, count: int) -> None:
    pair = data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=2).map(frozenset))
    asked = Asked(monotone(pair))
    assert smallest_flip(range(count), asked) == pair
    assert len(asked.subsets) <= 2 * (math.ceil(math.log2(count)) + 1) + 2


@given(st.data(), st.integers(1, 14))
def test_every_monotone_set_of_culprits_is_found_exactly(data: st.DataObject, count: int) -> None:
    culprits = data.draw(st.sets(st.integers(0, count - 1), min_size=1).map(frozenset))
    asked = Asked(monotone(culprits))
    assert smallest_flip(range(count), asked) == culprits


def assert_flips_and_is_minimal(found: frozenset[int], rule) -> None:
    assert rule(found) is Answer.DIFFERS
    for item in found:
        rest = found - {item}
        assert not rest or rule(rest) is not Answer.DIFFERS


@given(st.data(), st.integers(1, 9))
def test_with_sets_that_have_no_answer_what_is_found_flips_and_is_minimal(data: st.DataObject, count: int) -> None:
    everything = frozenset(range(count))
    one = st.sampled_from(sorted(everything))
    culprits = data.draw(st.sets(one, min_size=1).map(frozenset))
    subsets = st.sets(one).map(frozenset)
    unresolved = data.draw(st.sets(subsets, max_size=60).map(frozenset)) - {everything, frozenset()}
    rule = monotone(culprits, unresolved)
    assert_flips_and_is_minimal(smallest_flip(sorted(everything), Asked(rule)), rule)


@given(st.data(), st.integers(1, 7))
def test_also_where_changes_undo_one_another(data: st.DataObject, count: int) -> None:
    """Any rule at all: two changes that cancel out, several culprits, tests without an answer."""
    table: dict[frozenset[int], Answer] = {frozenset(): Answer.SAME, frozenset(range(count)): Answer.DIFFERS}

    def rule(subset: frozenset[int]) -> Answer:
        if subset not in table:
            table[subset] = data.draw(st.sampled_from(Answer))
        return table[subset]

    assert_flips_and_is_minimal(smallest_flip(range(count), Asked(rule)), rule)


def test_a_culprit_between_changes_that_need_one_another_is_still_found_alone() -> None:
    """0 and 2 work only together, as a library and what is built for it; 1 is the culprit."""

    def rule(subset: frozenset[int]) -> Answer:
        if len(subset & {0, 2}) == 1:
            return Answer.UNRESOLVED
        return Answer.DIFFERS if 1 in subset else Answer.SAME

    asked = Asked(rule)
    assert smallest_flip(range(3), asked) == {1}


def test_where_only_everything_together_has_an_answer_everything_is_returned() -> None:
    asked = Asked(lambda _: Answer.UNRESOLVED)
    assert smallest_flip(range(5), asked) == set(range(5))


@pytest.mark.parametrize(("changes", "tests"), [(0, 0), (1, 0), (2, 2), (3, 3), (6, 4), (8, 4), (9, 5), (60, 7)])
def test_the_number_of_tests_that_a_person_is_told(changes: int, tests: int) -> None:
    assert expected_tests(changes) == tests
