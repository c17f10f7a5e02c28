"""Which launches a check consists of, and Megatron's command line for each."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.samples import VALID, write
from validator.check import plan
from validator.check.arguments import launch_arguments, launch_variables, saved_step
from validator.pipeline import Pipeline, load_pipeline


def pipeline(folder: Path) -> Pipeline:
    return load_pipeline(write(folder, VALID), folder)


def value(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_the_chain_restores_every_save_once(tmp_path: Path) -> None:
    chain = plan.resume_chain(pipeline(tmp_path).policy)
    assert [segment.name for segment in chain] == ["resume-1", "resume-2", "resume-3"]
    assert [segment.restore for segment in chain] == [0, 3, 6]
    assert [segment.load_from for segment in chain] == [None, "resume-1", "resume-2"]
    assert [segment.kill_after for segment in chain] == [5, 8, None]


def test_no_saves_no_chain(tmp_path: Path) -> None:
    policy = pipeline(tmp_path).policy
    assert plan.resume_chain(type(policy)(policy.gates, (), policy.launch_seconds, ())) == ()


def test_every_launch_trains_the_same_number_of_steps(tmp_path: Path) -> None:
    found = pipeline(tmp_path)
    for planned in (plan.reference(), plan.repeat(), *plan.resume_chain(found.policy)):
        arguments = launch_arguments(found.computation, planned, tmp_path, tmp_path / "save", tmp_path / "load")
        assert value(arguments, "--train-iters") == "10"
        assert value(arguments, "--seed") == "1234"
        assert "--deterministic-mode" in arguments


def test_the_reference_neither_saves_nor_loads(tmp_path: Path) -> None:
    arguments = launch_arguments(pipeline(tmp_path).computation, plan.reference(), tmp_path, None, None)
    assert not [word for word in arguments if word.startswith(("--save", "--load", "--ckpt", "--async"))]


def test_segments_save_to_their_own_folder_and_restore_from_the_one_before(tmp_path: Path) -> None:
    found = pipeline(tmp_path)
    first, second, third = (
        launch_arguments(found.computation, segment, tmp_path, Path("/own"), Path("/before"))
        for segment in plan.resume_chain(found.policy)
    )
    assert (value(first, "--save"), value(first, "--save-interval")) == ("/own", "3")
    assert "--load" not in first
    assert "--async-save" not in first
    assert (value(second, "--save"), value(second, "--save-interval")) == ("/own", "6")
    assert {"--async-save", "--use-persistent-ckpt-worker"} <= set(second)
    assert (value(second, "--load"), value(second, "--ckpt-step")) == ("/before", "3")
    assert "--exit-on-missing-checkpoint" in second
    assert (value(third, "--load"), value(third, "--ckpt-step")) == ("/before", "6")
    assert "--save" not in third


def test_the_pipelines_variables_come_on_top_of_ours(tmp_path: Path) -> None:
    variables = launch_variables(pipeline(tmp_path).computation)
    assert variables["ATEN_CPU_CAPABILITY"] == "default"
    assert variables["GLOO_SOCKET_IFNAME"] == "lo"


def test_a_save_is_complete_when_the_tracker_says_so(tmp_path: Path) -> None:
    assert saved_step(tmp_path) == 0
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("6\n")
    assert saved_step(tmp_path) == 6
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("")  # as it is for a moment while it is written
    assert saved_step(tmp_path) == 0
