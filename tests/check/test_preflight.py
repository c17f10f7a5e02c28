"""What cannot be deterministic is refused by name before anything starts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.pipeline.samples import VALID, write
from tests.project import Project
from validator.check.preflight import check_data, check_variables
from validator.errors import UsageError
from validator.pipeline import TokenFiles, load_pipeline


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
    import ast
    from importlib.util import find_spec

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
