"""The request that a sandbox sees names its own places, and only what the launch needs is bound there."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from tests.execute.launching import request_in
from validator.errors import LaunchError
from validator.execute.container import ContainerExecutor, sandbox_variables, translate
from validator.execute.docker_engine import Engine
from validator.execute.image import Image, _alpine, _debian, _system
from validator.execute.launch import Surroundings
from validator.execute.sandbox import Bind, Inside, Sandbox, memory_bytes, settings, user
from validator.pipeline import Limits


def test_paths_are_the_sandboxs_own(tmp_path: Path) -> None:
    scratch = tmp_path / "reference"
    arguments = (
        "--hidden-size", "64", "--seed", "1", "--data-path", str(scratch / "corpus" / "corpus_text_document"),
        "--data-cache-path", str(scratch / "data_cache"), "--save", str(scratch / "checkpoints"),
        "--load", str(tmp_path / "resume-1" / "checkpoints"), "--ckpt-step", "3",
    )  # fmt: skip
    inside, binds = translate(request_in(tmp_path, arguments=arguments))
    assert inside.arguments == (
        "--hidden-size", "64", "--seed", "1", "--data-path", "/validator/launch/corpus/corpus_text_document",
        "--data-cache-path", "/validator/launch/data_cache", "--save", "/validator/launch/checkpoints",
        "--load", "/validator/load", "--ckpt-step", "3",
    )  # fmt: skip
    assert (inside.scratch, inside.trajectory) == (Path("/validator/launch"), Path("/validator/launch/trajectory"))
    assert binds == [Bind(tmp_path / "resume-1" / "checkpoints", "/validator/load")]
    assert str(tmp_path) not in str(inside)


def test_token_files_are_bound_read_only(tmp_path: Path) -> None:
    inside, binds = translate(request_in(tmp_path, arguments=("--data-path", "/data/set/text_document")))
    assert inside.arguments == ("--data-path", "/validator/data/text_document")
    assert binds == [Bind(Path("/data/set"), "/validator/data")]
    assert not binds[0].writable


def test_the_images_own_path_comes_after_ours() -> None:
    image = Image("i:1", "sha256:0", {}, MappingProxyType({"PYTHONPATH": "/opt/lib", "MKL_CBWR": "AVX2"}))
    surroundings = Surroundings(Path("python3"), Path("/kit"), Path("/megatron"), {"MKL_CBWR": "COMPATIBLE"})
    variables = sandbox_variables(image, surroundings)
    assert variables["PYTHONPATH"] == "/validator/kit:/validator/megatron:/opt/lib"
    assert variables["MKL_CBWR"] == "COMPATIBLE"
    assert variables["HOME"] == "/tmp"


def test_a_sandbox_is_hardened_whatever_it_runs() -> None:
    limits = Limits(memory_gibibytes=3, shared_memory_gibibytes=1, disk_gibibytes=4, processes=99)
    chosen = settings(Inside(["/bin/x", "y"], {}, volumes=["/data", "/kit"], binds=[Bind(Path("/k"), "/kit")]), limits,
                      lock_memory=False)  # fmt: skip
    assert chosen["network_mode"] == "none"
    assert chosen["read_only"] is True
    assert chosen["cap_drop"] == ["ALL"]
    assert chosen["security_opt"] == ["no-new-privileges"]
    assert chosen["user"] == "{}:{}".format(*user())
    assert user()[0] != 0
    assert (chosen["mem_limit"], chosen["memswap_limit"], chosen["pids_limit"]) == (3 << 30, 3 << 30, 99)
    assert {(each["Name"], each["Hard"]) for each in chosen["ulimits"]} == {("core", 0), ("fsize", 4 << 30)}
    assert set(chosen["tmpfs"]) == {"/tmp", "/data"}  # a volume of the image has no limit of its own
    assert all("size=2g" in options and "nosuid" in options for options in chosen["tmpfs"].values())
    assert [(each["Target"], each["ReadOnly"]) for each in chosen["mounts"]] == [("/kit", True)]
    assert "privileged" not in chosen
    locked = settings(Inside(["/bin/x"], {}), limits, lock_memory=True)["ulimits"]
    assert ("memlock", -1) in {(each["Name"], each["Hard"]) for each in locked}


def test_memory_is_a_share_of_the_machines_where_nothing_is_said() -> None:
    assert 0 < memory_bytes(Limits()) < 1 << 50
    assert memory_bytes(Limits(memory_gibibytes=2)) == 2 << 30


@pytest.mark.parametrize(
    ("share", "visible", "names"),
    [
        ((), "2,3,4", ("2", "3")),
        (("5", "6"), "2,3", ("5", "6")),
        ((), "GPU-a, GPU-b", ("GPU-a", "GPU-b")),
        ((), None, ()),
    ],
)
def test_a_launch_gets_the_gpus_that_its_caller_may_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: tuple[str, ...], visible: str | None, names: tuple[str, ...]
) -> None:
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    asked = asked_of(tmp_path, monkeypatch, "cuda", share)
    (wanted,) = settings(asked, Limits(), lock_memory=False)["device_requests"]
    assert tuple(wanted["DeviceIDs"] or ()) == names
    assert (wanted["Count"] or 0) == (0 if names else 2)


def test_a_launch_that_may_see_too_few_gpus_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(LaunchError, match=r"needs 2 GPUs, and CUDA_VISIBLE_DEVICES='3' names 1; let it name more"):
        asked_of(tmp_path, monkeypatch, "cuda")
    assert asked_of(tmp_path, monkeypatch, "cpu").gpu_names == ()


class NotStarted(Exception):  # noqa: N818 - nothing went wrong
    pass


def asked_of(folder: Path, monkeypatch: pytest.MonkeyPatch, device: str, share: tuple[str, ...] = ()) -> Inside:
    """What a launch of two ranks asks of a sandbox, which is not started."""
    asked: list[Inside] = []

    def start(_engine: object, _image: str, inside: Inside, *_: object) -> None:
        asked.append(inside)
        raise NotStarted

    monkeypatch.setattr(Sandbox, "start", start)
    image = Image("i:1", "sha256:0", {}, {})
    (folder / "kit").mkdir(exist_ok=True)
    executor = ContainerExecutor(Engine(None, "unix:///nowhere"), image, Limits(), gpus=share)
    request, surroundings = request_in(folder, device=device), Surroundings(Path("python3"), folder / "kit", None, {})
    with pytest.raises(NotStarted):
        executor.launch(request, surroundings, log=folder / "log.txt", limit_seconds=1)
    return asked[0]


def test_package_lists_of_distributions_are_read() -> None:
    status = (
        "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\nDescription: C\n Version: no\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: torn\nStatus: install ok installed\n"
    )
    assert _debian(status) == {"libc6": "2.36-9"}
    assert _alpine("C:Q1\nP:musl\nV:1.2.5-r0\nA:x86_64\n\nP:torn\n") == {"musl": "1.2.5-r0"}
    assert _system('NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n') == "Debian GNU/Linux 12 (bookworm)"
    assert _system("") == "unknown"
