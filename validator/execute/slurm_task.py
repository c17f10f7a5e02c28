"""What each task of a Slurm job runs: torchrun for its share of the ranks, below a supervisor.

Run as a file by the candidate's interpreter, never imported by the product: ``slurm_task.py PLAN.json``. The job's own
variables are not handed on but for the devices that Slurm chose: the plan holds the whole environment. Where a node has
several tasks, each gets its own of the node's GPUs, since every torchrun counts its ranks from 0.

The process id of this task is the supervisor's lifeline: Slurm may end the one, and the other ends the rest.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validator.execute.slurm_devices import Counts

#: Which GPUs a process sees, by name.
VISIBLE = "CUDA_VISIBLE_DEVICES"

#: What Slurm decides about a task's devices.
GRANTED = (VISIBLE, "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")

#: Ports for torchrun's store, below those of outgoing connections; a job's number chooses one.
PORTS = range(20_000, 32_000)


def master(variables: dict[str, str]) -> tuple[str, int]:
    """Address and port of the first task's store: loopback where the job has one node."""
    alone = variables.get("SLURM_JOB_NUM_NODES", "1") == "1"
    address = "127.0.0.1" if alone else variables["SLURM_LAUNCH_NODE_IPADDR"]
    return address, PORTS[int(variables["SLURM_JOB_ID"]) * 7919 % len(PORTS)]


def torchrun(plan: dict[str, Any], variables: dict[str, str]) -> list[str]:
    """The command of this task: one agent of ``tasks``, for ``ranks`` of the ranks, in the order of the tasks."""
    address, port = master(variables)
    return [
        plan["python"], "-m", "torch.distributed.run",
        "--nnodes", str(plan["tasks"]), "--node-rank", variables["SLURM_PROCID"],
        "--nproc-per-node", str(plan["ranks"]),
        "--rdzv-backend", "static", "--master-addr", address, "--master-port", str(port),
        "-m", plan["module"], plan["request"],
    ]  # fmt: skip


def devices(plan: dict[str, Any], variables: dict[str, str]) -> dict[str, str]:
    """The devices of this task. Several tasks of a node share out the GPUs that the node was granted, the first ones
    where Slurm does not say which; those that a site's Slurm bound to each task already stay as they are.

    Exits with one sentence where there are too few.
    """
    granted = {name: variables[name] for name in GRANTED if name in variables}
    ranks, tasks = plan["ranks"], plan["tasks_per_node"]
    if plan["device"] != "cuda" or tasks == 1:
        return granted
    needed = ranks * tasks
    told = granted.get(VISIBLE, plan["environment"].get(VISIBLE))
    names = list(map(str, range(needed))) if told is None else [name for name in told.split(",") if name]
    on_node = int(variables.get("SLURM_GPUS_ON_NODE", needed))
    if VISIBLE in granted and len(names) == ranks and on_node >= needed:
        return granted
    if len(names) < needed:
        few = f"{len(names)} of the {needed} GPUs that its {tasks} tasks need"
        sys.exit(f"validator: Slurm granted a node {few}; change --slurm-option.")
    first = int(variables["SLURM_LOCALID"]) * ranks
    return granted | {VISIBLE: ",".join(names[first : first + ranks])}


def write_host(plan: dict[str, Any]) -> None:
    """Say what the first task's machine is, as the product sees machines; whole or not at all."""
    from validator.environment.host import observe_host  # noqa: PLC0415 - found in the kit only

    part = Path(plan["host"] + ".part")
    part.write_text(json.dumps(asdict(observe_host())))
    os.replace(part, plan["host"])


def run(plan: dict[str, Any], variables: dict[str, str]) -> int:
    """Carry out this task; returns its exit code."""
    sys.path.insert(0, plan["kit"])
    from validator.execute.slurm_devices import Counts, use_binding  # noqa: PLC0415 - found in the kit only

    use_binding(plan["binding"])
    task = variables["SLURM_PROCID"]
    if task == "0":
        write_host(plan)
    if plan["request"] is None:
        return 0
    folder, own = Path(plan["directory"]), devices(plan, variables)
    counts = None
    if plan["device"] == "cuda":
        counts = Counts.start(folder, task, variables["SLURMD_NODENAME"], own.get(VISIBLE))
        counts.note()
    supervisor = Path(plan["kit"]) / "validator" / "execute" / "supervisor.py"
    command = [plan["python"], "-I", "-S", str(supervisor), *torchrun(plan, variables)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, env=plan["environment"] | own, cwd=folder, start_new_session=True
    )
    code = wait(process, counts, plan["count_every"])
    (folder / f"task-{task}.ended").touch()
    return code


def wait(process: subprocess.Popen[bytes], counts: Counts | None, every: float | None) -> int:
    """The launch's exit code. What its GPUs count is noted ``every`` so many seconds, and once it has ended."""
    if counts is None:
        return process.wait()
    while True:
        try:
            process.wait(every)
        except subprocess.TimeoutExpired:
            counts.note()
        else:
            counts.note()
            return process.returncode


if __name__ == "__main__":
    signal.signal(signal.SIGCONT, signal.SIG_IGN)
    sys.exit(run(json.loads(Path(sys.argv[1]).read_text()), dict(os.environ)))
