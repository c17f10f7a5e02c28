"""Faults in real launches are caught and named; and a fault that localisation has to find in a module."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command import ROOT, validator


@pytest.mark.slow
@pytest.mark.system
def test_faults_in_real_launches_are_caught_named_and_localised(tmp_path: Path) -> None:
    names = ("one-ulp-of-a-moment", "product-in-halves", "expert-bias-lost")
    file = tmp_path / "selftest.json"
    ran = validator(
        "selftest", "nemotron-cpu", "--out", str(tmp_path / "out"), "--json", str(file),
        *(word for name in names for word in ("--fault", name)),
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    record = json.loads(file.read_text())
    assert record["clean"]["holds"] is True
    found = {each["name"]: each for each in record["faults"]}
    assert {name: found[name]["outcome"] for name in names} == dict.fromkeys(names, "caught_and_named")
    assert found["one-ulp-of-a-moment"]["found"].startswith("step:3 optimizer/")
    assert found["one-ulp-of-a-moment"]["found"].endswith("linear_qkv.weight/exp_avg_sq")
    assert found["expert-bias-lost"]["found"] == "setup:3 buffers/decoder.layers.1.mlp.router.expert_bias"
    assert found["product-in-halves"]["found_module"] == "decoder.layers.3.self_attention.linear_proj"
    # At 5 decimals the log shows nothing of one unit in the last place.
    assert found["one-ulp-of-a-moment"]["approaches"]["five_decimals"] is False


@pytest.mark.nightly
@pytest.mark.parametrize("pipeline", sorted(file.stem for file in (ROOT / "pipelines").glob("nemotron-cpu*.yaml")))
def test_the_whole_catalogue_is_caught_and_named(pipeline: str, tmp_path: Path) -> None:
    ran = validator("selftest", pipeline, "--out", str(tmp_path / "out"), limit=3600)
    assert ran.code == 0, ran.out + ran.err
