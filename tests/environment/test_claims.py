"""From claims and host to an environment, and through JSON and back."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environment.samples import CLAIMS, COMPUTATION, H200, HOST
from validator.environment import Environment, Fact, Kind, Origin, from_claims
from validator.errors import TrajectoryError

ENVIRONMENT = from_claims(CLAIMS, HOST, COMPUTATION)


def test_facts_know_their_origin_and_are_texts() -> None:
    facts = ENVIRONMENT.facts
    assert facts[Kind.PACKAGES]["torch"] == Fact("2.14.1", Origin.CLAIMED)
    assert facts[Kind.PACKAGES]["python"] == Fact("3.12.1", Origin.CLAIMED)
    assert facts[Kind.ARGUMENTS]["moe_aux_loss_coeff"] == Fact("0.0001", Origin.CLAIMED)
    assert facts[Kind.MEGATRON]["commit"] == Fact("null", Origin.CLAIMED)
    assert facts[Kind.TORCH]["deterministic"] == Fact("true", Origin.CLAIMED)
    assert facts[Kind.WORKLOAD]["digest"] == Fact("ab" * 32, Origin.CLAIMED)
    assert facts[Kind.HARDWARE]["cpu"] == Fact("AMD EPYC 9654", Origin.OBSERVED)
    assert facts[Kind.SYSTEM]["libc"] == Fact("glibc 2.36", Origin.OBSERVED)
    assert facts[Kind.COMPUTATION]["data.corpus.vocabulary"] == Fact("512", Origin.OBSERVED)


def test_only_variables_that_belong_to_the_environment_are_kept() -> None:
    assert sorted(ENVIRONMENT.facts[Kind.VARIABLES]) == ["ATEN_CPU_CAPABILITY", "GLOO_SOCKET_IFNAME"]


def test_get() -> None:
    assert ENVIRONMENT.get(Kind.PACKAGES, "torch") == "2.14.1"
    assert ENVIRONMENT.get(Kind.PACKAGES, "apex") is None
    assert from_claims({}, HOST).get(Kind.COMPUTATION, "steps") is None


def test_gpus_and_driver_are_facts() -> None:
    facts = from_claims({}, dataclasses.replace(HOST, gpus=(H200, H200))).facts
    assert facts[Kind.HARDWARE]["gpu 1"].value == "NVIDIA H200"
    assert facts[Kind.SYSTEM]["nvidia driver"].value == "580.65.06"


def test_an_address_in_memory_is_no_fact() -> None:
    claims = {"arguments": {"hook": "<function f at 0x7f00aa>"}}
    assert from_claims(claims, HOST).get(Kind.ARGUMENTS, "hook") == "<function f>"


def test_a_claim_of_the_wrong_type_is_named() -> None:
    with pytest.raises(TrajectoryError, match=r"have 3 as 'packages'; accepted is a mapping"):
        from_claims({"packages": 3}, HOST)


texts = st.text(max_size=8)
environments = st.dictionaries(
    st.sampled_from(Kind),
    st.dictionaries(texts, st.builds(Fact, texts, st.sampled_from(Origin)), min_size=1, max_size=4),
).map(Environment)


@settings(deadline=None)
@given(environments)
def test_json_and_back(environment: Environment) -> None:
    read = Environment.from_json(json.loads(json.dumps(environment.to_json())))
    assert {kind: dict(facts) for kind, facts in read.facts.items()} == environment.facts
    assert read.to_json() == environment.to_json()


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"schema": "validator/environment", "version": 2, "facts": {}},
        {"schema": "validator/environment", "version": 1},
        {"schema": "validator/environment", "version": 1, "facts": {"packages": 3}},
        {"schema": "validator/environment", "version": 1, "facts": {"package": {}}},
        {"schema": "validator/environment", "version": 1, "facts": {"packages": {"torch": "2"}}},
        {"schema": "validator/environment", "version": 1, "facts": {"packages": {"torch": ["observed", 2]}}},
        {"schema": "validator/environment", "version": 1, "facts": {"packages": {"torch": ["said", "2"]}}},
    ],
)
def test_what_is_no_environment_is_refused(content: dict[str, object]) -> None:
    with pytest.raises(TrajectoryError, match=r"^An environment.*\.$"):
        Environment.from_json(content)
