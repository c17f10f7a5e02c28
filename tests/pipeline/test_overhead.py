"""The policy about the cost of determinism."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.samples import VALID, without_waivers, write
from validator.errors import UsageError
from validator.pipeline import Gate, Requirement, load_pipeline
from validator.pipeline.overhead import DefaultArm, OverheadPolicy

OVERHEAD = """\
  overhead:
    budget: 12.5 %
    pairs: {min: 4, max: 10}
    steps: {warmup: 2, timed: 20}
    default:
      unset: [MKL_CBWR]
      variables: {OMP_NUM_THREADS: 1}
      without: [--expert-model-parallel-size]
      arguments: --overlap-grad-reduce
"""


def load(folder: Path, overhead: str) -> OverheadPolicy:
    return load_pipeline(str(write(folder, without_waivers(VALID) + overhead)), folder).policy.overhead


def test_the_policy_is_what_the_file_says(tmp_path: Path) -> None:
    policy = load(tmp_path, OVERHEAD)
    assert policy == OverheadPolicy(
        budget=0.125,
        least_pairs=4,
        most_pairs=10,
        warmup=2,
        timed=20,
        default=DefaultArm(
            ("MKL_CBWR",), {"OMP_NUM_THREADS": "1"}, ("--expert-model-parallel-size",), ("--overlap-grad-reduce",)
        ),
    )
    assert policy.looks == (4, 10)


def test_without_the_key_a_pipeline_is_as_valid_as_before_and_the_gate_is_off(tmp_path: Path) -> None:
    pipeline = load_pipeline(str(write(tmp_path, VALID)), tmp_path)
    assert pipeline.policy.overhead == OverheadPolicy()
    assert pipeline.policy.overhead.budget == 0.10
    assert pipeline.policy.gates[Gate.OVERHEAD] is Requirement.OFF


def test_the_computation_does_not_depend_on_it(tmp_path: Path) -> None:
    plain = load_pipeline(str(write(tmp_path, without_waivers(VALID))), tmp_path).computation.digest
    assert load_pipeline(str(write(tmp_path, without_waivers(VALID) + OVERHEAD)), tmp_path).computation.digest == plain


@pytest.mark.parametrize(
    ("written", "budget"), [("0.1", 0.1), ("10 %", 0.1), ("10%", 0.1), ("1.5", 1.5), ("150 %", 1.5)]
)
def test_a_budget_is_a_fraction_or_a_percentage(tmp_path: Path, written: str, budget: float) -> None:
    assert load(tmp_path, f"  overhead: {{budget: {written}}}\n").budget == pytest.approx(budget, rel=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("budget: 12.5 %", "budget: -0.1", "policy.overhead.budget is '-0.1'; accepted is a fraction or a percentage"),
        ("budget: 12.5 %", "budget: 0", "accepted is a fraction or a percentage above 0"),
        ("budget: 12.5 %", "budget: cheap", "policy.overhead.budget is 'cheap'"),
        ("min: 4, max: 10", "min: 5, max: 10", "policy.overhead.pairs is min 5, max 10; accepted are even numbers"),
        ("min: 4, max: 10", "min: 10, max: 4", "max from min to 4 times min"),
        ("min: 4, max: 10", "min: 4, max: 18", "max from min to 4 times min"),
        ("min: 4, max: 10", "min: 2, max: 4", "accepted is an integer from 4 to 100"),
        ("timed: 20", "timed: 1", "accepted is an integer from 3 to 10000"),
        ("without: [--expert", "without: [expert", "accepted is an option that begins with --"),
        ("--overlap-grad-reduce", "--seed 3", "--seed"),
        ("unset: [MKL_CBWR]", "unset: [MKL CBWR]", "accepted is a variable's name"),
        ("unset:", "unsets:", "did you mean 'unset'?"),
        ("OMP_NUM_THREADS: 1", "OMP-NUM: 1", "is no name of an environment variable"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in OVERHEAD
    with pytest.raises(UsageError) as caught:
        load(tmp_path, OVERHEAD.replace(old, new))
    assert words in str(caught.value)
    assert str(caught.value).count("\n") == 0
