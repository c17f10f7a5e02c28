"""Real servers of Debian's packages on loopback, each ended by its own process ID."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from tests.monitoring.boards import ROOT

#: Seconds until a server has to answer, and until something has to appear in it.
PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> Any:
    with urlopen(url, timeout=10) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read())


def wait_for[Found](what: str, look: Callable[[], Found]) -> Found:
    """The first true answer of ``look``; fails after a while, with the last one."""
    deadline = time.monotonic() + PATIENCE
    found = look()
    while not found:
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within {PATIENCE:g} s; the last answer was {found!r}")
        time.sleep(0.25)
        found = look()
    return found


@contextlib.contextmanager
def server(name: str, log: Path, *arguments: str, ready: str) -> Iterator[None]:
    """Run a server until the block ends; ``ready`` is an address that answers once it is up."""
    program = shutil.which(name)
    assert program is not None, f"{name} is missing: scripts/install-system-packages installs it"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            with urlopen(ready, timeout=2):  # noqa: S310 - loopback
                return True
        except (URLError, OSError):
            return False

    with log.open("wb") as output, subprocess.Popen([program, *arguments], stdout=output, stderr=output) as process:
        try:
            wait_for(name, answers)
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass(frozen=True)
class Monitoring:
    """The three servers, with the project's own rules and configuration."""

    gateway: str
    prometheus: str
    alertmanager: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query; asserts that Prometheus accepts it."""
        answer = get(f"{self.prometheus}/api/v1/query?{urlencode({'query': expression})}")
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def value(self, expression: str) -> float:
        """The value of the only series of a query."""
        (series,) = self.query(expression)
        return float(series["value"][1])

    def alerts(self) -> list[dict[str, Any]]:
        """What fires in Alertmanager."""
        found: list[dict[str, Any]] = get(f"{self.alertmanager}/api/v2/alerts")
        return found


@contextlib.contextmanager
def monitoring(folder: Path) -> Iterator[Monitoring]:
    """Pushgateway, Alertmanager and Prometheus, the last configured as the project does but for addresses and pace."""
    ports = [free_port() for _ in range(3)]
    gateway, alertmanager, prometheus = (f"127.0.0.1:{port}" for port in ports)
    settings = yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text())
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings["rule_files"] = [str(ROOT / "prometheus" / "rules" / "*.yml")]
    settings["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager]
    jobs = {job["job_name"]: job for job in settings["scrape_configs"]}
    jobs["pushgateway"]["static_configs"][0]["targets"] = [gateway]
    settings["scrape_configs"] = [jobs["pushgateway"]]
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(settings))
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            server(
                "prometheus-pushgateway", folder / "pushgateway.log", f"--web.listen-address={gateway}",
                ready=f"http://{gateway}/-/ready",
            )
        )  # fmt: skip
        stack.enter_context(
            server(
                "prometheus-alertmanager", folder / "alertmanager.log", f"--web.listen-address={alertmanager}",
                f"--config.file={ROOT / 'prometheus' / 'alertmanager.yml'}",
                f"--storage.path={folder / 'alertmanager'}", "--cluster.listen-address=",
                ready=f"http://{alertmanager}/-/ready",
            )
        )  # fmt: skip
        stack.enter_context(
            server(
                "prometheus", folder / "prometheus.log", f"--web.listen-address={prometheus}",
                f"--config.file={config}", f"--storage.tsdb.path={folder / 'prometheus'}",
                ready=f"http://{prometheus}/-/ready",
            )
        )  # fmt: skip
        yield Monitoring(f"http://{gateway}", f"http://{prometheus}", f"http://{alertmanager}")
