"""How launches in containers end: killed with the product, with the engine, and what they ask of the engine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.project import Project
from tests.system.engine import PROGRAMS, Engine, tiny
from tests.system.in_image import check, words
from validator.execute.docker_engine import LABEL

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

#: In the place of Python in an image of one static program: tells what is asked of it, then never ends.
STUBBORN = """#!/bin/sh
case "$1" in
-c) echo '{"version": [3, 12, 1], "tag": "cpython-312", "packages":
    {"torch": "9", "megatron-core": "9", "einops": "9", "psutil": "9", "numpy": "9", "xxhash": "9"}}' | tr -d '\\n' ;;
*) trap '' TERM; while true; do sleep 60; done ;;
esac
"""


def stubborn(engine: Engine) -> str:
    engine.add(tiny(), "tiny:base")
    engine.build("stubborn:1", "FROM tiny:base\nENV PATH=/bin\nCOPY python3 /bin/python3\n", {"python3": STUBBORN})
    return "stubborn:1"


def start(project: Project, command: list[str], repository: Path) -> subprocess.Popen[bytes]:
    """The product as a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(repository)}
    return subprocess.Popen([sys.executable, "-m", "validator", *command], cwd=project.folder, env=environment)


def wait_until(ready: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def launches(engine: Engine) -> list[str]:
    """States of containers that carry a request: not those that an interpreter is only asked in."""
    found = engine.client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
    return [each.status for each in found if any("request.json" in mount["Source"] for mount in each.attrs["Mounts"])]


def test_a_launch_ends_with_the_product_and_the_next_start_removes_its_container(
    project: Project, engine: Engine, debian_image: str, repository: Path
) -> None:
    project.double.misbehave(every={"hang": {"step": 2}})
    product = start(project, words(project, debian_image), repository)
    wait_until(lambda: launches(engine) == ["running"])
    time.sleep(1)
    product.kill()
    product.wait()
    wait_until(lambda: launches(engine) == ["exited"], 10)  # its standard input was closed with the product
    project.double.misbehave()
    assert project.record_golden().code == 0
    ran = check(project, debian_image)
    assert ran.verdict == "pass"
    assert engine.containers == []


def test_a_launch_that_does_not_end_with_the_product_is_ended_by_the_next_start(
    project: Project, engine: Engine, repository: Path
) -> None:
    image = stubborn(engine)
    product = start(project, ["check", "tiny", "--image", image], repository)
    wait_until(lambda: launches(engine) == ["running"])
    product.kill()
    product.wait()
    time.sleep(1)
    assert launches(engine) == ["running"]
    assert project.run("doctor", "--image", image).code == 0
    assert engine.containers == []


def test_another_products_launch_is_left_alone(project: Project, engine: Engine, repository: Path) -> None:
    image = stubborn(engine)
    product = start(project, ["check", "tiny", "--image", image], repository)
    try:
        wait_until(lambda: launches(engine) == ["running"])
        assert project.run("doctor", "--image", image).code == 0
        assert launches(engine) == ["running"]
    finally:
        product.send_signal(signal.SIGTERM)
        assert product.wait(60) == 143
    assert engine.containers == []


def test_ctrl_c_leaves_no_container(project: Project, engine: Engine, repository: Path) -> None:
    image = stubborn(engine)
    product = start(project, ["check", "tiny", "--image", image], repository)
    wait_until(lambda: launches(engine) == ["running"])
    product.send_signal(signal.SIGINT)
    assert product.wait(60) == 130
    assert engine.containers == []


def crash(engine: Engine) -> None:
    """SIGKILL the engine and its containerd; what its containers run goes on."""
    file = engine.folder / "exec" / "containerd" / "containerd.pid"
    containerd = file.read_text().strip()
    engine.stop(signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(containerd), signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{containerd}/exe").exists())
    file.unlink()  # where nobody waits for orphans, the next start would take the zombie for one that runs


#: An engine that is told to end kills its containers first: which of the two the product sees first is chance.
@pytest.mark.parametrize(
    ("end", "sentence"),
    [(Engine.stop, r"went away or does not answer \(|The launch failed: it exited with code 137;"),
     (crash, r"The Docker engine at unix://\S+ went away or does not answer \((watching|killing) the launch\): ")],
    ids=["told to end", "killed"],
)  # fmt: skip
def test_an_engine_that_goes_away_is_an_error_and_its_next_start_is_clean(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    repository: Path,
    end: Callable[[Engine], None],
    sentence: str,
) -> None:
    own = Engine()
    try:
        monkeypatch.setenv("DOCKER_HOST", own.address)
        image = stubborn(own)
        file = project.folder / "report.json"
        product = start(project, ["check", "tiny", "--image", image, "--json", str(file)], repository)
        wait_until(lambda: launches(own) == ["running"])
        try:
            end(own)
            assert product.wait(60) == 3
        finally:
            own.restart()
        report = json.loads(file.read_text())
        assert report["verdict"] == "error"
        assert re.search(sentence, report["sentence"])
        assert project.run("doctor", "--image", image).code == 0
        assert own.containers == []
    finally:
        own.close()


def test_no_engine_is_one_sentence(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    ran = project.run("check", "tiny", "--image", "debian:base")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "No Docker engine can be reached" in ran.err


def test_gpus_shared_and_locked_memory_are_asked_for_as_the_pipeline_says(engine: Engine, tmp_path: Path) -> None:
    from validator.execute.sandbox import Inside, Sandbox
    from validator.pipeline import Limits

    image = stubborn(engine)
    limits = Limits(memory_gibibytes=1, shared_memory_gibibytes=1, processes=50, locked_memory=True)
    sandbox = Sandbox.start(engine_of(engine), image, Inside(["/bin/python3", "x"], {}, gpus=2), limits, lambda _: None)
    try:
        sandbox.container.reload()
        host = sandbox.container.attrs["HostConfig"]
        assert [(each["Count"], each["Capabilities"]) for each in host["DeviceRequests"]] == [(2, [["gpu"]])]
        assert json.loads(engine.hook.read_text())["id"] == sandbox.container.id  # NVIDIA's hook was run for it
        assert (host["ShmSize"], host["Memory"], host["MemorySwap"]) == (1 << 30, 1 << 30, 1 << 30)
        assert (host["PidsLimit"], host["ReadonlyRootfs"], host["NetworkMode"]) == (50, True, "none")
        assert (host["CapDrop"], host["SecurityOpt"], host["Privileged"]) == (["ALL"], ["no-new-privileges"], False)
        assert sandbox.container.attrs["Config"]["User"].split(":")[0] not in {"", "0"}
    finally:
        sandbox.remove()


def test_a_toolkit_that_lets_images_out_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from validator.errors import LaunchError
    from validator.execute.nvidia_toolkit import insist_on_toolkit

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match=r"not installed here.* 1\.17\.8 or newer"):
        insist_on_toolkit()
    program = tmp_path / "nvidia-ctk"
    program.write_text("#!/bin/sh\necho 'NVIDIA Container Toolkit CLI version 1.17.7'\n")
    program.chmod(0o755)
    with pytest.raises(LaunchError, match=r"is 1\.17\.7 here.* before 1\.17\.8; update it"):
        insist_on_toolkit()
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    assert insist_on_toolkit() == (1, 18, 0)


def engine_of(engine: Engine) -> object:
    from validator.execute.docker_engine import Engine as Connection

    return Connection(engine.client, engine.address)
