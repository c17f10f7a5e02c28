"""What Slurm says of a job, and what is made of it."""

from __future__ import annotations

import pytest

from validator.errors import UsageError
from validator.execute.slurm_jobs import JobState
from validator.execute.slurm_options import SlurmOptions
from validator.execute.slurm_task import master, torchrun

#: As ``scontrol show job --oneliner`` of Slurm 22.05 prints it.
LINE = (
    "JobId=7 JobName=validator-reference UserId=root(0) Priority=1 JobState={state} Reason={reason} Dependency=(null) "
    "Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode={code} RunTime=00:00:01 NodeList=node[1-2] NumNodes=2"
)


def state(name: str, reason: str = "None", code: str = "0:0") -> JobState:
    return JobState.parse(LINE.format(state=name, reason=reason, code=code))


@pytest.mark.parametrize(
    ("name", "waits", "runs", "over"),
    [
        ("PENDING", True, False, False),
        ("CONFIGURING", True, False, False),
        ("RUNNING", False, True, False),
        ("COMPLETING", False, True, False),
        ("SUSPENDED", False, True, False),
        ("COMPLETED", False, False, True),
        ("FAILED", False, False, True),
        ("NODE_FAIL", False, False, True),
    ],
)
def test_states_are_told_apart(name: str, waits: bool, runs: bool, over: bool) -> None:
    found = state(name)
    assert (found.waits, found.runs, found.is_over) == (waits, runs, over)
    assert found.nodes == "node[1-2]"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("CANCELLED", "cancelled from outside"),
        ("PREEMPTED", "preempted"),
        ("NODE_FAIL", "a node of the job failed"),
        ("OUT_OF_MEMORY", "out of the memory"),
        ("TIMEOUT", "time limit that Slurm was given"),
    ],
)
def test_an_end_without_a_result_has_its_reason(name: str, words: str) -> None:
    assert words in str(state(name).why)


def test_a_failure_has_its_log_to_tell_and_its_code() -> None:
    assert state("FAILED", code="3:0").why is None
    assert state("FAILED", code="3:0").code == 3
    assert state("FAILED", code="0:9").code == 137


def test_reasons_that_no_time_takes_away_are_hopeless() -> None:
    assert state("PENDING", "PartitionTimeLimit").is_hopeless
    assert not state("PENDING", "Resources").is_hopeless
    assert not state("RUNNING", "PartitionTimeLimit").is_hopeless


def test_what_is_no_job_is_no_state() -> None:
    with pytest.raises(ValueError, match="slurm_load_jobs"):
        JobState.parse("slurm_load_jobs error")


def test_options_are_ours_or_sbatchs() -> None:
    options = SlurmOptions.parse({"tasks_per_node": "2", "queue_seconds": "60", "partition": "gpu", "exclusive": ""})
    assert (options.tasks_per_node, options.queue_seconds) == (2, 60)
    assert options.others == {"partition": "gpu", "exclusive": ""}
    options.check(4)
    with pytest.raises(UsageError, match="3 ranks of a node do not share out among 2 tasks"):
        options.check(3)


@pytest.mark.parametrize(
    "given", [{"tasks_per_node": "x"}, {"queue_seconds": "0"}, {"export": "ALL"}, {"Wrap": "x"}, {"a": "b\n#SBATCH"}]
)
def test_options_that_are_neither_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="is not accepted"):
        SlurmOptions.parse(given)


def test_each_task_is_an_agent_of_one_rendezvous() -> None:
    plan = {"python": "/env/bin/python", "tasks": 4, "ranks": 2, "module": "m", "request": "/r.json"}
    variables = {
        "SLURM_PROCID": "3", "SLURM_JOB_ID": "71", "SLURM_JOB_NUM_NODES": "2", "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.5",
    }  # fmt: skip
    command = torchrun(plan, variables)
    port = str(master(variables)[1])
    assert command == [
        "/env/bin/python", "-m", "torch.distributed.run", "--nnodes", "4", "--node-rank", "3", "--nproc-per-node", "2",
        "--rdzv-backend", "static", "--master-addr", "10.0.0.5", "--master-port", port, "-m", "m", "/r.json",
    ]  # fmt: skip
    assert master(variables | {"SLURM_JOB_NUM_NODES": "1"})[0] == "127.0.0.1"
    assert master(variables | {"SLURM_PROCID": "0"}) == master(variables)
    assert 20_000 <= int(port) < 32_000
