"""A PostgreSQL server of the tests' own, on loopback, run by a user who is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server with its data below ``folder``; gives its address, without a database. Stopped by its process."""
    assert _BINARIES, "Debian's postgresql is missing: run scripts/install-system-packages"
    binaries, data = _BINARIES[-1], folder / "data"
    person: str | None = None
    if os.getuid() == 0:  # the server refuses to be root
        person = pwd.getpwnam("postgres").pw_name
        folder = Path("/tmp") / f"validator-postgres-{os.getpid()}"
        folder.mkdir()
        shutil.chown(folder, person)
        data = folder / "data"
    port = _free_port()
    none = subprocess.DEVNULL
    make = [str(binaries / "initdb"), "-D", str(data), "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run([*make, "--locale=C"], check=True, user=person, cwd="/", stdout=none, stderr=none)
    options = ["-h", "127.0.0.1", "-p", str(port), "-k", "", "-F", "-c", "max_connections=60"]
    server = subprocess.Popen(
        [str(binaries / "postgres"), "-D", str(data), *options], user=person, cwd="/", stdout=none, stderr=none
    )
    address = f"postgresql://tests@127.0.0.1:{port}"
    try:
        _wait(f"{address}/postgres", server)
        yield address
    finally:
        server.send_signal(signal.SIGINT)  # ends the sessions that are left
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        if person is not None:
            shutil.rmtree(folder)


def new_database(address: str, name: str) -> str:
    """An empty database; gives its address as SQLAlchemy has it."""
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{address.replace('postgresql:', 'postgresql+psycopg:')}/{name}"


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert server.poll() is None, "PostgreSQL did not start"
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("PostgreSQL does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
