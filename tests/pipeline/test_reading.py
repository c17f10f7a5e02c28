"""Reading a pipeline: the model that comes out, and one sentence for everything that cannot be."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.pipeline.samples import DIGEST, VALID, write
from validator.errors import UsageError
from validator.pipeline import (
    Corpus,
    Device,
    Gate,
    Limits,
    Requirement,
    Save,
    SaveMode,
    Spec,
    TokenFiles,
    load_pipeline,
)
from validator.trajectory.groups import Moment, Phase


def load(folder: Path, text: str, name: str = "small"):
    return load_pipeline(write(folder, text, name), folder)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        load(folder, text)
    return str(caught.value)


def test_a_valid_file_gives_the_model_that_it_describes(tmp_path: Path) -> None:
    pipeline = load(tmp_path, VALID)
    computation, policy = pipeline.computation, pipeline.policy
    assert (pipeline.name, pipeline.description) == ("small", "a small pipeline")
    assert (computation.device, computation.nodes, computation.ranks) == (Device.CPU, 1, 2)
    assert (computation.steps, computation.seed, computation.spec) == (10, 1234, Spec.REFERENCE)
    assert computation.data == Corpus(documents=200, vocabulary=512, seed=7)
    assert computation.arguments[:4] == ("--hidden-size", "64", "--hybrid-layer-pattern", "MEM*E/*E")
    assert computation.arguments[4] == "--expert-model-parallel-size"
    assert computation.variables == {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1"}
    assert policy.gates == {
        Gate.GOLDEN: Requirement.REQUIRED,
        Gate.REPEATABILITY: Requirement.ADVISORY,
        Gate.RESUME: Requirement.REQUIRED,
        Gate.OVERHEAD: Requirement.OFF,
    }
    assert policy.saves == (Save(3, SaveMode.SYNCHRONOUS), Save(6, SaveMode.ASYNCHRONOUS))
    assert policy.launch_seconds == 300
    (waiver,) = policy.waivers
    assert (waiver.name, waiver.ranks, waiver.expires) == ("rng/expert-parallel-rng", (1,), date(2027, 5, 31))
    assert waiver.seen[1].moments.first == Moment(6, Phase.SETUP)
    assert waiver.seen[1].moments.last is None
    assert waiver.seen[1].observed == DIGEST


def test_what_may_be_left_out_has_a_default(tmp_path: Path) -> None:
    text = VALID.replace("  nodes: 1\n", "").replace("  spec: reference\n", "")
    text = text.replace("  limits: {launch_seconds: 300}\n", "").replace(
        "  gates: {golden: required, repeatability: advisory, resume: required}\n", "  gates: {golden: off}\n"
    )
    pipeline = load(tmp_path, text)
    assert (pipeline.computation.nodes, pipeline.computation.spec) == (1, Spec.REFERENCE)
    assert pipeline.policy.gates[Gate.GOLDEN] is Requirement.OFF
    assert pipeline.policy.gates[Gate.RESUME] is Requirement.REQUIRED
    assert pipeline.policy.launch_seconds == 600


def test_a_prefix_is_relative_to_the_file(tmp_path: Path) -> None:
    text = VALID.replace("    corpus: {documents: 200, vocabulary: 512, seed: 7}", "    prefix: data/my_text_document")
    data = load(tmp_path, text).computation.data
    assert data == TokenFiles(tmp_path / "data" / "my_text_document", "data/my_text_document")


def test_the_digest_is_of_the_computation_and_not_of_policy_layout_or_comments(tmp_path: Path) -> None:
    digest = load(tmp_path, VALID).computation.digest
    same = VALID.replace("launch_seconds: 300", "launch_seconds: 301").replace("# Mamba, experts, attention", "")
    same = same.replace("--hidden-size 64 ", "--hidden-size    '64'\n    ").replace("a small", "another small")
    assert load(tmp_path, same).computation.digest == digest
    for old, new in (("steps: 10", "steps: 11"), ("size 64", "size 65"), ("NUM_THREADS: 1", "NUM_THREADS: 2")):
        assert load(tmp_path, VALID.replace(old, new)).computation.digest != digest


#: (what is changed, what it becomes, line of the refusal or None, what the sentence must hold)
REFUSED = [
    ("name: small", "name: smaller", 1, ["name is 'smaller'", "'small'"]),
    ("name: small", "name: Small", 1, ["name is 'Small'", "lower-case"]),
    (
        "description: a small pipeline",
        "descripton: a small pipeline",
        2,
        ["'descripton'", "did you mean 'description'?"],
    ),
    ("  steps: 10", "  step: 10", 7, ["'step' is not a known key", "did you mean 'steps'?", "in computation"]),
    ("  steps: 10", "  steps: ten", 7, ["computation.steps is 'ten'", "an integer from 1 to 1000000"]),
    ("  steps: 10", "  steps: 10.0", 7, ["computation.steps is '10.0'"]),
    ("  steps: 10", "  steps: '10'", 7, ["computation.steps is '10'"]),
    ("  steps: 10", "  steps: 012", 7, ["computation.steps is '012'"]),
    ("  steps: 10", "  steps: [10]", 7, ["computation.steps is a list"]),
    ("  steps: 10", "  steps:", 7, ["computation.steps is empty"]),
    ("  steps: 10", f"  steps: {'9' * 5000}", 7, ["computation.steps is", "an integer"]),
    ("  steps: 10", "  steps: 10\n  steps: 11", 8, ["computation.steps stands twice"]),
    ("  seed: 1234\n", "", 3, ["computation lacks the key 'seed'"]),
    ("  device: cpu", "  device: gpu", 4, ["computation.device is 'gpu'", "cpu or cuda"]),
    ("  nodes: 1", "  nodes: 0", 5, ["computation.nodes is '0'", "1 to 4096"]),
    ("  ranks: 2", "  ranks: 0", 6, ["computation.ranks is '0'", "1 to 1024"]),
    ("  spec: reference", "  spec: megatron", 9, ["computation.spec is 'megatron' on device cpu"]),
    ("vocabulary: 512", "vocabulary: 513", 10, ["vocabulary 513", "--vocab-size 512"]),
    ("    corpus: {documents: 200, vocabulary: 512, seed: 7}", "    {}", 10, ["computation.data has neither"]),
    ("    corpus:", "    prefix: x\n    corpus:", 10, ["computation.data has both"]),
    ("  arguments: |", "  arguments: >", 12, ["computation.arguments", "accepted is a block with |"]),
    ("--hidden-size 64", "--hidden-size 64 --seed 5", 13, ["'--seed'", "set computation.seed instead"]),
    ("    --expert", "    --save-interval=5 --expert", 14, ["'--save-interval=5'", "policy.resume.saves"]),
    ("    --expert", "    --exit-interval 5 --expert", 14, ["'--exit-interval'", "policy.limits.launch_seconds"]),
    ("    --expert", "    --deterministic-mode --expert", 14, ["'--deterministic-mode'", "remove it"]),
    ("--hidden-size 64", "hidden-size 64", 13, ["begins with 'hidden-size'", "--"]),
    ("--hidden-size 64", "--hidden-size $SIZE", 13, ["nothing is expanded"]),
    ('"MEM*E/*E"', '"MEM*E/*E', 13, ["never closed"]),
    ("parallel-size 2", "parallel-size 3", 12, ["expert 3", "divisor of the 2 ranks"]),
    ("--expert-model-parallel-size 2", "--tensor-model-parallel-size 4", 12, ["tensor 4", "divisor of the 2 ranks"]),
    ("--global-batch-size 4", "--global-batch-size 3", 12, ["--global-batch-size 3", "= 2"]),
    ("    OMP_NUM_THREADS: 1", "    OMP NUM: 1", 18, ["'_'"]),
    ("    OMP_NUM_THREADS: 1", "    OMP_NUM_THREADS:", 18, ["OMP_NUM_THREADS is empty"]),
    ("    OMP_NUM_THREADS: 1", "    PYTHONPATH: /x", 18, ["--megatron"]),
    ("golden: required", "golden: yes", 20, ["policy.gates.golden is 'yes'", "required, advisory or off"]),
    ("golden: required", "speed: required", 20, ["'speed' is not a known key"]),
    ("{step: 3, mode", "{step: 7, mode", 21, ["steps [7, 6]", "ascend"]),
    ("{step: 6, mode", "{step: 9, mode", 21, ["step 9 of 10", "at most step 8"]),
    ("{step: 6, mode", "{step: 0, mode", 24, ["step is '0'"]),
    ("mode: synchronous", "mode: sinchronous", 23, ["'sinchronous' (did you mean 'synchronous'?)"]),
    ("mode: synchronous", "mode: asynchronous", 21, ["no synchronous save"]),
    ("mode: synchronous", "mode: sync", 23, ["mode is 'sync'", "synchronous or asynchronous"]),
    ("    - {step: 6, mode: asynchronous}\n", "", 21, ["1 saves", "at least 2"]),
    ("launch_seconds: 300", "launch_seconds: -1", 25, ["launch_seconds is '-1'"]),
    ("- gate: resume", "- gate: golden", 27, ["gate is 'golden'", "accepted is resume"]),
    ("leaf: rng/", "leaf: random/", 28, ["'random/expert-parallel-rng'", "GROUP/LEAF", "rng"]),
    ("{restore: 3, ranks: [1]", "{restore: 4, ranks: [1]", 30, ["restore 4", "[3, 6]"]),
    ("{restore: 3, ranks: [1]", "{restore: 3, ranks: [2]", 30, ["rank 2", "0 to 1"]),
    ("{restore: 3, ranks: [1]", "{restore: 3, ranks: []", 30, ["ascending order"]),
    ("{restore: 3, ranks: [1]", "{restore: 3, ranks: [1, 0]", 30, ["ascending order"]),
    ("setup:3 .. end", "setup:4", 30, ["setup:4 after restore 3", "setup:3"]),
    ("setup:3 .. end", "step:11", 30, ["step:11 after restore 3"]),
    ("setup:3 .. end", "step:3", 30, ["step:3 after restore 3"]),
    ("setup:3 .. end", "step:5 .. step:4", 30, ["moments is 'step:5 .. step:4'"]),
    ("setup:3 .. end", "everywhere", 30, ["moments is 'everywhere'", "setup:K"]),
    ("leaf: rng/expert-parallel-rng", "leaf: gradients/x", 30, ["group gradients", "step:K"]),
    (DIGEST, DIGEST[:-1], 30, ["observed is", "32 hexadecimal digits"]),
    (f'"{DIGEST}"', "1" * 32, 30, ["observed is", "in quotes"]),
    ("link: https://", "link: http://", 33, ["link is 'http://"]),
    ("expires: 2027-05-31", "expires: 2027-02-30", 34, ["'2027-02-30'", "YYYY-MM-DD"]),
    ("expires: 2027-05-31", "expires: never", 34, ["'never'", "YYYY-MM-DD"]),
    ("      expires: 2027-05-31\n", "", 27, ["lacks the key 'expires'"]),
    ("policy:", "policy: none\nother:", 20, ["'other' is not a known key"]),
    ("device: cpu", "device: {cpu", None, ["is no valid YAML"]),
    ("device: cpu", "device: \x07", None, ["is no valid YAML"]),
    ("device: cpu", "device: *nowhere", 4, ["is no valid YAML"]),
    ("device: cpu", f"device: {'[' * 5000}", None, ["is no valid YAML"]),
    ("description: a small pipeline", "? [a]\n: b", 2, ["no plain word"]),
    ("description: a small pipeline", "<<: {a: b}", 2, ["no plain word"]),
]


@pytest.mark.parametrize(("old", "new", "line", "parts"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_is_refused_with_file_line_key_value_and_what_is_accepted(
    tmp_path: Path, old: str, new: str, line: int | None, parts: list[str]
) -> None:
    assert old in VALID
    message = refusal(tmp_path, VALID.replace(old, new, 1))
    for part in parts:
        assert part in message
    assert message.startswith(f"{tmp_path / 'small.yaml'}:{'' if line is None else f'{line}: '}")
    assert "\n" not in message
    assert message.endswith(".")


def test_resume_needs_saves_unless_it_is_off(tmp_path: Path) -> None:
    start = VALID.index("  resume:\n")
    text = VALID[:start] + "  limits: {launch_seconds: 5}\n"
    assert "policy lacks the key 'resume'" in refusal(tmp_path, text)
    pipeline = load(tmp_path, text.replace("resume: required", "resume: off"))
    assert pipeline.policy.saves == ()


def test_all_gates_off_is_no_check(tmp_path: Path) -> None:
    gates = "golden: off, repeatability: off, resume: off"
    text = VALID.replace("golden: required, repeatability: advisory, resume: required", gates)
    assert "every gate off" in refusal(tmp_path, text)


def test_an_empty_file_a_list_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    assert "the file is empty" in refusal(tmp_path, "# nothing\n")
    assert "the file is a list" in refusal(tmp_path, "- name\n")
    file = tmp_path / "small.yaml"
    file.write_bytes(b"name: \xff")
    with pytest.raises(UsageError, match="byte 6 is no UTF-8"):
        load_pipeline(file, tmp_path)


def test_limits_have_defaults_and_are_read(tmp_path: Path) -> None:
    assert load(tmp_path, VALID).policy.limits == Limits()
    more = "launch_seconds: 300, memory_gibibytes: 64, shared_memory_gibibytes: 16, scratch_gibibytes: 1"
    text = VALID.replace("launch_seconds: 300", f"{more}, disk_gibibytes: 200, processes: 99, locked_memory: true")
    assert load(tmp_path, text).policy.limits == Limits(64, 16, 1, 200, 99, locked_memory=True)
    # Limits are no part of what is computed.
    assert load(tmp_path, text).computation.digest == load(tmp_path, VALID).computation.digest


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        ("memory_gibibytes: 0", ["limits.memory_gibibytes is '0'", "1 to"]),
        ("locked_memory: 1", ["limits.locked_memory is '1'", "true or false"]),
        ("memory: 1", ["'memory'"]),
    ],
)
def test_limits_that_are_none_are_refused(tmp_path: Path, limit: str, parts: list[str]) -> None:
    message = refusal(tmp_path, VALID.replace("launch_seconds: 300", f"launch_seconds: 300, {limit}"))
    for part in parts:
        assert part in message
