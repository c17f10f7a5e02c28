"""One timed launch at a time on each device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from validator.errors import LaunchError
from validator.overhead.lock import device_lock, device_names
from validator.pipeline import Device

HOLDER = """
import sys
from pathlib import Path
from validator.overhead.lock import device_lock
with device_lock(["cpu"], directory=Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_second_process_waits_until_the_first_is_done(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waited: list[str] = []
        with pytest.raises(LaunchError, match="Another check has timed launches on cpu for 0.3 s"):  # noqa: SIM117
            with device_lock(["cpu"], directory=tmp_path, wait_seconds=0.3, on_wait=waited.append):
                pytest.fail("two hold the lock")
        assert waited == ["cpu"]
        with device_lock(["cuda-0"], directory=tmp_path, wait_seconds=0.3):  # another device is free
            pass

        def let_go(_: str) -> None:
            assert holder.stdin is not None
            holder.stdin.write("\n")
            holder.stdin.flush()

        with device_lock(["cpu"], directory=tmp_path, wait_seconds=30, on_wait=let_go):
            assert holder.wait(10) == 0


def test_the_lock_ends_with_its_process_even_if_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        holder.wait()
    with device_lock(["cpu"], directory=tmp_path, wait_seconds=0.5):
        pass


def test_a_link_in_its_place_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "megatron-change-validator-cpu.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LaunchError, match="cannot be opened"):  # noqa: SIM117
        with device_lock(["cpu"], directory=tmp_path):
            pytest.fail("followed the link")
    assert not (tmp_path / "elsewhere").exists()


def test_all_gpus_and_some_of_them_lock_each_other_out_and_different_ones_do_not(tmp_path: Path) -> None:
    with device_lock(["cuda-0"], directory=tmp_path):
        with device_lock(["cuda-1"], directory=tmp_path, wait_seconds=0.3):
            pass
        with pytest.raises(LaunchError, match="timed launches on cuda-all"):  # noqa: SIM117
            with device_lock(["cuda-all"], directory=tmp_path, wait_seconds=0.3):
                pytest.fail("two hold GPU 0")
    with device_lock(["cuda-all"], directory=tmp_path):
        with pytest.raises(LaunchError, match="timed launches on cuda-all"):  # noqa: SIM117
            with device_lock(["cuda-0"], directory=tmp_path, wait_seconds=0.3):
                pytest.fail("two hold GPU 0")
        with device_lock(["cpu"], directory=tmp_path, wait_seconds=0.3):
            pass


def test_which_devices_are_locked() -> None:
    assert device_names(Device.CPU) == ("cpu",)
    assert device_names(Device.CUDA, {}) == ("cuda-all",)
    assert device_names(Device.CUDA, {"CUDA_VISIBLE_DEVICES": "3, 1,3"}) == ("cuda-1", "cuda-3")
    assert device_names(Device.CUDA, {"CUDA_VISIBLE_DEVICES": "GPU-ab/../c"}) == ("cuda-GPUabc",)
