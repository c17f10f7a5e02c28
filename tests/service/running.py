"""The service as a process of its own, that can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.service import payloads

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0


@dataclass
class Running:
    """``validator serve`` with these variables; ``folder`` is where it runs and keeps its data."""

    folder: Path
    variables: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    url: str = ""
    starts: int = 0
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.folder / "service.log"

    def start(self) -> None:
        """Start it on the port that it had, and wait until it listens."""
        ready = self.folder / "address"
        ready.unlink(missing_ok=True)
        port = {"VALIDATOR_PORT": self.url.rpartition(":")[2] or "0"}
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(ROOT), **port, **self.variables,
        }  # fmt: skip
        words = [sys.executable, "-m", "validator", "serve", "--ready", str(ready)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=log, stderr=log)
        self.until("the service listens", lambda: ready.exists() or self._ended())
        self.url = ready.read_text().strip()
        self.starts += 1

    def kill(self) -> None:
        """SIGKILL: no last word."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and its workers as well."""
        if self.process is not None and self.process.poll() is None:
            self._signal(signal.SIGTERM)
        for worker in self.workers():
            os.killpg(worker, signal.SIGKILL)

    def workers(self) -> list[int]:
        """Process IDs of runners that live."""
        found = []
        for file in (self.folder / "data" / "work").glob("*/runner.pid"):
            number = int(file.read_text())
            try:
                command = Path(f"/proc/{number}/cmdline").read_bytes()
            except OSError:
                continue
            if b"validator.service.engines.runner" in command:
                found.append(number)
        return found

    def get(self, path: str) -> Any:
        """JSON; ``None`` while it is not there or away."""
        try:
            with urlopen(self.url + path, timeout=10) as answer:  # noqa: S310 - loopback
                return json.loads(answer.read())
        except (OSError, ValueError):
            return None

    def text(self, path: str) -> str:
        with urlopen(self.url + path, timeout=10) as answer:  # noqa: S310 - loopback
            return str(answer.read().decode())

    def deliver(self, event: str, payload: dict[str, Any], guid: str = "") -> int:
        """One webhook; gives the status, 0 where no answer came."""
        body = payloads.encoded(payload)
        headers = payloads.headers(event, body, guid or str(uuid.uuid4()))
        try:
            with urlopen(Request(self.url + "/webhooks/github", body, headers), timeout=20) as answer:  # noqa: S310
                return int(answer.status)
        except HTTPError as error:
            return error.code
        except OSError:
            return 0

    def job(self, number: int) -> dict[str, Any]:
        return self.get(f"/api/v1/jobs/{number}") or {}

    def until[Found](self, what: str, look: Callable[[], Found], seconds: float = PATIENCE) -> Found:
        """The first true answer."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {seconds:g} s, but {found!r}\n{self.log.read_text()[-3000:]}")
            time.sleep(0.02)
        return found

    def _ended(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return False

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(30)
