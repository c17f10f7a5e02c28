"""A one-node Slurm of the tests' own on loopback, with two GPUs that are none."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

_CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
GresTypes=gpu
KillWait=2
MinJobAge=300
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=short Nodes={host} MaxTime=1 State=UP
PartitionName=closed Nodes={host} State=DOWN
"""


class Cluster:
    """munged, slurmctld and slurmd as root, in a folder of their own; ``close`` ends all three by process id."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="v-slurm-"))
        host = socket.gethostname().partition(".")[0]
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        for index in range(2):
            os.mknod(self.folder / f"gpu{index}", 0o20666, os.makedev(195, index))
        (self.folder / "gres.conf").write_text(f"NodeName={host} Name=gpu File={self.folder}/gpu[0-1]\n")
        controller, daemon = _free_ports()
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(
            _CONFIGURATION.format(host=host, folder=self.folder, controller=controller, daemon=daemon)
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.folder.chmod(0o755)
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            self._start(
                "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                f"--seed-file={self.folder}/munged.seed",
            )  # fmt: skip
            self._wait_for((self.folder / "munge.socket").exists)
            self._start("slurmctld", "-D", "-f", str(self.configuration))
            self._start("slurmd", "-D", "-f", str(self.configuration))
            self._wait_for(lambda: self.ask("sinfo", "--noheader", "--partition=main", "--format=%T").strip() == "idle")
        except BaseException:
            self.close()
            raise

    def _start(self, program: str, *options: str) -> None:
        command = [f"/usr/sbin/{program}", *options]
        with (self.folder / f"{program}.out").open("wb") as log:
            self._started.append(
                subprocess.Popen(
                    command, stdout=log, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True
                )
            )

    def _wait_for(self, ready: object, seconds: float = 40) -> None:
        deadline = time.monotonic() + seconds
        while not ready():  # type: ignore[operator]
            if time.monotonic() > deadline or any(each.poll() is not None for each in self._started):
                logs = "\n".join(
                    file.read_text(errors="replace")[-1500:] for file in self.folder.glob("*.[lo][ou][gt]")
                )
                raise RuntimeError(logs)
            time.sleep(0.1)

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"SLURM_CONF": str(self.configuration)}

    def ask(self, *command: str) -> str:
        """What one of Slurm's commands prints, whether it fails or not."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    @property
    def jobs(self) -> list[str]:
        """Numbers of the jobs in the queue, the ending ones too."""
        return self.ask("squeue", "--noheader", "--format=%i").split()

    def close(self) -> None:
        for process in reversed(self._started):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]
