"""The pipelines for GPUs, as far as a machine without one can look at them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.workload.isolated import isolated
from validator.check.arguments import launch_arguments
from validator.check.plan import LaunchPlan
from validator.check.preflight import check_arguments, check_data, check_variables
from validator.golden import GoldenStore
from validator.overhead.arms import default_arm
from validator.pipeline import Device, Spec, find_pipelines, load_pipeline
from validator.trajectory.groups import Group

ROOT = Path(__file__).resolve().parents[2]

#: Pipelines for GPUs, by device, not by name. None can have a golden that was recorded without one.
GPU = [file.stem for file in find_pipelines(ROOT) if load_pipeline(file, ROOT).computation.device is Device.CUDA]


def option(words: tuple[str, ...], name: str) -> str:
    return words[words.index(name) + 1]


def count_parameters(words: tuple[str, ...]) -> int:
    """Parameters of the hybrid model that these arguments describe: no biases, untied embeddings, squared ReLU, one
    repeated layer for multi-token prediction.
    """

    def number(name: str) -> int:
        return int(option(words, name))

    hidden = number("--hidden-size")
    vocabulary = math.ceil(number("--vocab-size") / 128) * 128
    heads, channels = number("--mamba-num-heads"), number("--mamba-head-dim")
    inner, grouped = heads * channels, 2 * number("--mamba-num-groups") * number("--mamba-state-dim")
    convolution = (inner + grouped) * (4 + 1)
    mamba = hidden + hidden * (2 * inner + grouped + heads) + convolution + 3 * heads + inner + inner * hidden
    queries, groups = number("--num-attention-heads"), number("--num-query-groups")
    attention = hidden + hidden * (2 * queries + 2 * groups) * number("--kv-channels")
    experts = number("--num-experts")
    widths = experts * number("--moe-ffn-hidden-size") + number("--moe-shared-expert-intermediate-size")
    moe = hidden + experts * hidden + 2 * hidden * widths
    sizes = {"M": mamba, "*": attention, "E": moe}
    main, *depths = option(words, "--hybrid-layer-pattern").split("/")
    prediction = 3 * hidden + 2 * hidden * hidden + sum(sizes[layer] for layer in depths[0])
    return 2 * vocabulary * hidden + hidden + sum(sizes[layer] for layer in main) + prediction


def test_the_count_is_that_of_a_model_that_really_ran() -> None:
    """Two ranks of nemotron-cpu hold all experts together, and everything else each."""
    pipeline = load_pipeline("nemotron-cpu", ROOT)
    golden = GoldenStore(ROOT / "golden").find("nemotron-cpu", "cpu-x86-64-v3-1x2")
    assert golden is not None
    trajectory, last = golden.trajectory, golden.trajectory.moments[-1]
    ranks = [trajectory.leaves(rank, last, Group.GATHERED_PARAMETERS).table.keys for rank in (0, 1)]
    count = sum(math.prod(key.shape) for key in ranks[0])
    count += sum(math.prod(key.shape) for key in ranks[1] if ".local_experts." in key.name)
    assert count == count_parameters(pipeline.computation.arguments)


def test_there_are_four_for_gpus() -> None:
    assert GPU == ["nemotron-8gpu", "nemotron-fp8", "nemotron-h200", "nemotron-te"]


def test_nothing_is_waived_that_nobody_saw() -> None:
    """A waiver holds the digest that a defect leaves; a GPU's is known once a check ran there."""
    assert [name for name in GPU if load_pipeline(name, ROOT).policy.waivers] == []


def test_in_bf16_and_in_fp8_it_is_the_same_network() -> None:
    plain, fp8 = (load_pipeline(name, ROOT).computation for name in ("nemotron-te", "nemotron-fp8"))
    assert fp8.arguments[: len(plain.arguments)] == plain.arguments
    assert not [word for word in plain.arguments if "fp8" in word]
    assert (plain.variables, plain.spec) == (fp8.variables, fp8.spec)


@pytest.mark.parametrize("name", GPU)
def test_each_has_at_least_100_million_parameters(name: str) -> None:
    assert count_parameters(load_pipeline(name, ROOT).computation.arguments) == 265_583_904


@pytest.mark.parametrize("name", GPU)
def test_nothing_in_it_rules_out_determinism(name: str) -> None:
    computation = load_pipeline(name, ROOT).computation
    check_variables(computation.variables)
    check_arguments(computation)
    check_data(computation)


@pytest.mark.parametrize("name", GPU)
def test_its_default_arm_is_free_to_choose(name: str) -> None:
    pipeline = load_pipeline(name, ROOT)
    arm = default_arm(pipeline.computation, pipeline.policy.overhead)
    assert not arm.deterministic
    slow = {"CUBLAS_WORKSPACE_CONFIG", "NCCL_ALGO", "NVTE_ALLOW_NONDETERMINISTIC_ALGO", "MAMBA_DETERMINISTIC",
            "CAUSAL_CONV1D_DETERMINISTIC", "TORCHDYNAMO_DISABLE"}  # fmt: skip
    assert not slow & arm.variables.keys()
    fused = "--cross-entropy-loss-fusion" in arm.computation.arguments
    assert fused == (pipeline.computation.spec is Spec.MEGATRON)


def test_eight_gpus_are_split_as_said() -> None:
    words = load_pipeline("nemotron-8gpu", ROOT).computation.arguments
    assert (option(words, "--tensor-model-parallel-size"), option(words, "--expert-model-parallel-size")) == ("2", "4")
    assert {"--sequence-parallel", "--overlap-grad-reduce", "--overlap-param-gather"} <= set(words)


def parsed(name: str, default: str) -> None:
    """Megatron's own parser and its checks of what fits together, with Transformer Engine taken to be there."""
    import sys

    from validator.workload.launch import prepare_device

    prepare_device("cpu")
    from megatron.training import arguments

    from validator.workload import megatron_internals

    pipeline = load_pipeline(name, ROOT)
    computation = pipeline.computation
    if default == "default":
        computation = default_arm(computation, pipeline.policy.overhead).computation
    words = launch_arguments(computation, LaunchPlan("reference", ""), Path("/nowhere"), None, None)
    if default == "default":
        words.remove("--deterministic-mode")
    arguments.is_te_min_version = lambda *_, **__: True
    sys.argv = ["workload", *words]
    args = megatron_internals.parse_arguments()
    assert args.world_size == computation.world_size
    assert bool(args.fp8) == (name == "nemotron-fp8")
    assert args.deterministic_mode == (default != "default")


@pytest.mark.parametrize(("name", "arm"), [(name, arm) for name in GPU for arm in ("deterministic", "default")])
def test_megatrons_own_parser_takes_it(name: str, arm: str) -> None:
    ranks = load_pipeline(name, ROOT).computation.world_size
    isolated(parsed, name, arm, variables={
        "WORLD_SIZE": str(ranks), "RANK": "0", "LOCAL_RANK": "0", "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999",
    })  # fmt: skip
