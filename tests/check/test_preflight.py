"""What cannot be deterministic is refused by name before anything starts."""

from __future__ import annotations

import ast
import dataclasses
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.pipeline.samples import VALID, write
from tests.project import Project
from validator.check.preflight import (
    REFUSED_ARGUMENTS,
    check_arguments,
    check_data,
    check_packages,
    check_precision,
    check_variables,
)
from validator.environment import Gpu, Host, observe_host
from validator.errors import UsageError
from validator.pipeline import Computation, Device, Spec, TokenFiles, load_pipeline


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"NCCL_ALGO": "Ring"},
        {"NCCL_ALGO": "Ring, CollnetDirect,CollnetChain,^NVLS"},
        {"NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0"},
        {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
        {"CUBLAS_WORKSPACE_CONFIG": ":16:8"},
        {"MAMBA_DETERMINISTIC": "1"},
        {"MAMBA_DETERMINISTIC": ""},
        {"CAUSAL_CONV1D_DETERMINISTIC": "1"},
        {"SOMETHING": "else"},
    ],
)
def test_accepted(variables: dict[str, str]) -> None:
    check_variables(variables)


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("NCCL_ALGO", "Tree", "Ring, CollnetDirect, CollnetChain, ^NVLS"),
        ("NCCL_ALGO", "Ring,Tree", "separated by commas"),
        ("NCCL_ALGO", "ring", "Ring"),
        ("NCCL_ALGO", "", "Ring"),
        ("NCCL_ALGO", " , ", "Ring"),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "1", "accepted is 0"),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "", "accepted is 0"),
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:2", ":4096:8 or :16:8"),
        ("MAMBA_DETERMINISTIC", "0", "begins with 1"),
        ("CAUSAL_CONV1D_DETERMINISTIC", "0", "begins with 1"),
    ],
)
def test_refused(name: str, value: str, accepted: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_variables({name: value})
    message = str(caught.value)
    assert message.startswith(f"{name}={value!r} rules out determinism")
    assert accepted in message
    assert message.endswith("change it in computation.variables of the pipeline.")


def test_where_it_was_set_is_named() -> None:
    with pytest.raises(UsageError, match=r"change it in --env\.$"):
        check_variables({"NCCL_ALGO": "Tree"}, {"NCCL_ALGO": "--env"})


def test_what_is_accepted_is_what_megatron_accepts() -> None:
    """The lists are Megatron's own, read from its source."""
    spec = find_spec("megatron")
    places = list(spec.submodule_search_locations or []) if spec else []
    files = [file for place in places if (file := Path(place) / "training" / "determinism.py").is_file()]
    assert files, "no Megatron with training/determinism.py is installed; make setup does it"
    from validator.check.preflight import ACCEPTED_VALUES, NCCL_ALGORITHMS

    values = {}
    for node in ast.parse(files[0].read_text()).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            values[node.target.id] = node.value
    tokens = values["ACCEPTED_NCCL_ALGO_TOKENS"]
    assert isinstance(tokens, ast.Call)
    assert ast.literal_eval(tokens.args[0]) == set(NCCL_ALGORITHMS)
    accepted = values["ACCEPTED_ENV_VAR_VALUES"]
    assert isinstance(accepted, ast.Dict)
    found = {}
    for key, value in zip(accepted.keys, accepted.values, strict=True):
        assert isinstance(key, ast.Constant)
        assert isinstance(value, ast.Call)
        found[key.value] = ast.literal_eval(value.args[0])
    assert found == {name: set(values) for name, values in ACCEPTED_VALUES.items()}


def test_token_files_must_be_there(tmp_path: Path) -> None:
    computation = load_pipeline(write(tmp_path, VALID), tmp_path).computation
    check_data(computation)
    files = dataclasses.replace(computation, data=TokenFiles(tmp_path / "my_text_document", "my_text_document"))
    for suffix in (".bin", ".idx"):
        with pytest.raises(UsageError, match=rf"my_text_document\{suffix} is no file"):
            check_data(files)
        (tmp_path / f"my_text_document{suffix}").write_bytes(b"")
    check_data(files)


def test_a_computation_of_several_nodes_needs_a_scheduler(project: Project) -> None:
    project.change("nodes: 1", "nodes: 2")
    ran = project.check()
    assert ran.code == 2
    assert "computation.nodes is 2; this machine runs 1" in ran.err


def computation(tmp_path: Path, arguments: str = "", **changes: object) -> Computation:
    """The sample pipeline's computation, with more arguments and other values."""
    made = load_pipeline(write(tmp_path, VALID), tmp_path).computation
    return dataclasses.replace(
        made, device=Device.CUDA, spec=Spec.MEGATRON, arguments=(*made.arguments, *arguments.split()), **changes
    )


def machine(name: str, capability: str) -> Host:
    return dataclasses.replace(observe_host(), gpus=(Gpu(name, "580.1", capability, "143771"),))


@pytest.mark.parametrize("argument", ["--cross-entropy-loss-fusion", "--tp-comm-overlap"])
def test_what_deterministic_mode_refuses_is_refused_before_it(tmp_path: Path, argument: str) -> None:
    with pytest.raises(UsageError, match=f"^{argument} rules out determinism, .*remove it from computation.arguments"):
        check_arguments(computation(tmp_path, argument))
    check_arguments(computation(tmp_path))


def test_the_refused_arguments_are_those_that_megatron_refuses() -> None:
    spec = find_spec("megatron")
    places = list(spec.submodule_search_locations or []) if spec else []
    (file,) = [file for place in places if (file := Path(place) / "training" / "determinism.py").is_file()]
    (line,) = [line for line in file.read_text().splitlines() if line.startswith("ARG_VALUES_REQUIRED")]
    required = ast.literal_eval(line.partition("=")[2].strip())
    assert required == {word.removeprefix("--").replace("-", "_"): False for word in REFUSED_ARGUMENTS}


@pytest.mark.parametrize(
    ("arguments", "gpu", "told"),
    [
        ("", ("Tesla T4", "7.5"), None),
        ("--fp8-format hybrid", ("NVIDIA H200", "9.0"), None),
        ("--fp8-format hybrid --fp8-recipe tensorwise", ("NVIDIA H200", "9.0"), None),
        ("--fp8-format hybrid --fp8-recipe=mxfp8", ("NVIDIA B200", "10.0"), None),
        ("--fp4-format e2m1", ("NVIDIA B200", "10.0"), None),
        ("--fp8-recipe mxfp8", ("NVIDIA H200", "9.0"), None),  # without a format it is bf16
        (
            "--fp8-format hybrid --fp8-recipe mxfp8", ("NVIDIA H200", "9.0"),
            "MXFP8 needs compute capability 10.0 or newer, and NVIDIA H200 has 9.0; accepted there: bf16 and FP8 with "
            "delayed or tensorwise or blockwise scaling; change computation.arguments.",
        ),
        ("--fp4-format e2m1", ("NVIDIA H200", "9.0"), "NVFP4 needs compute capability 10.0 or newer"),
        (
            "--fp8-format e4m3", ("NVIDIA A100", "8.0"),
            "FP8 with delayed scaling needs compute capability 8.9 or newer, and NVIDIA A100 has 8.0; accepted there: "
            "bf16; change computation.arguments.",
        ),
    ],
)  # fmt: skip
def test_precision_follows_from_the_devices_capability(
    tmp_path: Path, arguments: str, gpu: tuple[str, str], told: str | None
) -> None:
    asked, host = computation(tmp_path, arguments), machine(*gpu)
    if told is None:
        check_precision(asked, host)
        return
    with pytest.raises(UsageError) as caught:
        check_precision(asked, host)
    assert told in str(caught.value)


def test_fp8_on_a_cpu_is_refused(tmp_path: Path) -> None:
    asked = dataclasses.replace(computation(tmp_path, "--fp8-format hybrid"), device=Device.CPU)
    with pytest.raises(UsageError, match="FP8 with delayed scaling needs a GPU, and computation.device is cpu"):
        check_precision(asked, observe_host())


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        ({}, None),
        ({"mamba-ssm": None, "causal-conv1d": None}, None),
        ({"mamba-ssm": "2.3.0", "causal-conv1d": "1.6.0", "flash-attn": "2.8.3"}, None),
        ({"mamba-ssm": "2.3.2.post1"}, None),
        ({"mamba-ssm": "2.2.6.post3"}, "mamba-ssm 2.2.6.post3 has no deterministic backward pass; accepted is 2.3.0"),
        ({"causal-conv1d": "1.5.3.post1"}, "causal-conv1d 1.5.3.post1 has no deterministic"),
        ({"flash-attn": "2.4.0"}, "accepted is 2.4.1 or newer"),
    ],
)
def test_packages_without_a_deterministic_backward_pass_are_refused_where_they_compute(
    tmp_path: Path, packages: dict[str, str | None], told: str | None
) -> None:
    asked = computation(tmp_path)
    check_packages(dataclasses.replace(asked, spec=Spec.REFERENCE), packages)
    if told is None:
        check_packages(asked, packages)
        return
    with pytest.raises(UsageError) as caught:
        check_packages(asked, packages)
    assert told in str(caught.value)
