"""What each task of a Slurm job runs: torchrun for its share of the ranks, below a supervisor.

Run as a file by the candidate's interpreter, never imported by the product: ``slurm_task.py PLAN.json``. The job's own
variables are not handed on but for the devices that Slurm chose: the plan holds the whole environment.

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
from typing import Any

#: What Slurm decides about a task's devices.
GRANTED = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")

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


def write_host(plan: dict[str, Any]) -> None:
    """Say what the first task's machine is, as the product sees machines; whole or not at all."""
    sys.path.insert(0, plan["kit"])
    from validator.environment.host import observe_host  # noqa: PLC0415 - found in the kit only

    part = Path(plan["host"] + ".part")
    part.write_text(json.dumps(asdict(observe_host())))
    os.replace(part, plan["host"])


def run(plan: dict[str, Any], variables: dict[str, str]) -> int:
    """Carry out this task; returns its exit code."""
    if variables["SLURM_PROCID"] == "0":
        write_host(plan)
    if plan["request"] is None:
        return 0
    granted = {name: variables[name] for name in GRANTED if name in variables}
    supervisor = Path(plan["kit"]) / "validator" / "execute" / "supervisor.py"
    command = [plan["python"], "-I", "-S", str(supervisor), *torchrun(plan, variables)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, env=plan["environment"] | granted, cwd=plan["directory"], start_new_session=True
    )
    code = process.wait()
    Path(plan["directory"], f"task-{variables['SLURM_PROCID']}.ended").touch()
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGCONT, signal.SIG_IGN)
    sys.exit(run(json.loads(Path(sys.argv[1]).read_text()), dict(os.environ)))
