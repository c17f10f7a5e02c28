"""A Docker engine of the tests' own, and images that need no registry."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Root file systems are made once and kept: half a minute each.
CACHE = Path(tempfile.gettempdir()) / f"validator-tests-{os.getuid()}"

#: Programs in the place of NVIDIA's: the engine's hook, which only tells what it was asked.
PROGRAMS = Path(__file__).parent / "programs"

#: What is bound into a bare Debian image to make it one that launches run in: the project's environment.
ENVIRONMENT = tuple(dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix).resolve())))


class Engine:
    """One dockerd on a socket in a folder of its own; ``stop`` ends it by its process id and removes the folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="v-docker-"))
        self.address = f"unix://{self.folder}/docker.sock"
        self.hook = self.folder / "hook"
        self.restart()

    def restart(self) -> None:
        """Start it, or start it again with what it had."""
        options = [
            "-H", self.address, "--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec",
            "--pidfile", f"{self.folder}/d.pid", "--storage-driver=overlay2", "--iptables=false", "--ip6tables=false",
            "--ip-forward=false", "--ip-masq=false", "--bridge=none",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["/usr/sbin/dockerd", *options], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env=os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "HOOK_TELLS": str(self.hook)},
            )  # fmt: skip
        self.client = self._connect()

    def _connect(self) -> Any:
        import docker

        deadline = time.monotonic() + 30
        while True:
            try:
                client = docker.DockerClient(base_url=self.address, version="auto", timeout=120)
                client.ping()
            except docker.errors.DockerException:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.1)
            else:
                return client

    def add(self, rootfs: Path, name: str) -> str:
        """Import a root file system; returns the image's ID."""
        repository, tag = name.split(":")
        self.client.api.import_image_from_file(str(rootfs), repository=repository, tag=tag)
        return str(self.client.images.get(name).id)

    def build(self, name: str, dockerfile: str, files: Mapping[str, str | bytes] | None = None) -> str:
        """Build without a network; returns the image's ID."""
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as archive:
            for path, content in {"Dockerfile": dockerfile, **(files or {})}.items():
                data = content.encode() if isinstance(content, str) else content
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(data), 0o755
                archive.addfile(member, io.BytesIO(data))
        context.seek(0)
        image, _ = self.client.images.build(
            fileobj=context, custom_context=True, tag=name, network_mode="none", rm=True, forcerm=True
        )
        return str(image.id)

    @property
    def containers(self) -> list[str]:
        """Names and states of all containers, running or not."""
        return [f"{each.name} {each.status}" for each in self.client.containers.list(all=True)]

    @property
    def volumes(self) -> list[str]:
        return [each.name for each in self.client.volumes.list()]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def close(self) -> None:
        """Stop it and remove everything."""
        self.stop()
        for mount in sorted(mounts_below(self.folder), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.folder)], check=False)


def mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1] for line in lines if line.split()[1].startswith(f"{folder}/")]


def debian() -> Path:
    """A minimal Debian with Python, as a tar; made once and kept."""
    made = CACHE / "debian-bookworm.tar"
    if not made.exists():
        CACHE.mkdir(mode=0o700, exist_ok=True)
        part = made.with_suffix(f".{os.getpid()}.tar")
        # Folders of root are open, so that an environment that lies there on the host is found below it.
        command = [
            "mmdebstrap", "--quiet", "--variant=minbase", "--include=python3", '--customize-hook=chmod 755 "$1/root"',
            "bookworm", str(part),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        part.rename(made)
    return made


def tiny() -> Path:
    """A root file system of a megabyte: one static program."""
    made = CACHE / "busybox.tar"
    CACHE.mkdir(mode=0o700, exist_ok=True)
    with tarfile.open(made, "w") as archive:
        for folder in ("bin", "tmp", "etc", "dev", "proc", "sys"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        archive.add("/bin/busybox", "bin/busybox")
        for name in ("sh", "sleep", "cat"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return made
