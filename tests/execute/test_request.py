"""The file that both sides of a launch read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.execute.launching import request_in
from validator.errors import LaunchError
from validator.execute.request import LaunchRequest, Sample, corpus_prefix, launch_command


def test_a_request_reads_back_as_it_was_written(tmp_path: Path) -> None:
    request = request_in(
        tmp_path,
        arguments=("--bf16", "--seed", "1"),
        corpus={"documents": 2, "vocabulary": 8, "seed": 3},
        restore_step=3,
        samples=(Sample(1, "step:3", "parameters", 4000000000),),
        flips=17,
        stamps=("--env A=b",),
        switches={"blind": "constant"},
        trace=2,
    )
    request.write(tmp_path / "request.json")
    assert LaunchRequest.read(tmp_path / "request.json") == request
    assert list(tmp_path.iterdir()) == [tmp_path / "request.json"]


def test_the_file_names_its_schema_and_version(tmp_path: Path) -> None:
    request_in(tmp_path).write(tmp_path / "request.json")
    content = json.loads((tmp_path / "request.json").read_text())
    assert (content["schema"], content["version"]) == ("validator/launch", 1)


@pytest.mark.parametrize("change", [{"version": 2}, {"schema": "other"}, {"surprise": 1}])
def test_what_is_no_request_of_this_version_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / "request.json"
    request_in(tmp_path).write(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(LaunchError, match=r"request\.json"):
        LaunchRequest.read(file)


def test_a_samples_files_are_named_by_rank_moment_and_group() -> None:
    assert Sample(3, "setup:7", "rng", 1).stem == "rank-00003.setup-7.rng"


def test_the_corpus_lies_in_the_scratch_folder(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    assert request.corpus_prefix == corpus_prefix(request.scratch)
    assert request.corpus_prefix.is_relative_to(request.scratch)


def test_the_coverage_of_a_save_is_there_whole(tmp_path: Path) -> None:
    request = request_in(tmp_path)
    request.trajectory.mkdir(parents=True)
    request.write_coverage(1, ["optimizer: x"])
    assert json.loads(request.coverage_file(1).read_text()) == {"unmapped": ["optimizer: x"]}
    assert list(request.trajectory.iterdir()) == [request.coverage_file(1)]


def test_torchrun_starts_the_ranks_on_this_machine_only() -> None:
    command = launch_command(Path("/env/bin/python"), 4, 23456, Path("/out/request.json"))
    assert command[:3] == ["/env/bin/python", "-m", "torch.distributed.run"]
    assert command[command.index("--nproc-per-node") + 1] == "4"
    assert command[command.index("--master-addr") + 1] == "127.0.0.1"
    assert command[-3:] == ["-m", "validator.workload.entry", "/out/request.json"]
