"""A plugin inside a launch: what is called when, and how its failures are told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from validator.errors import LaunchError
from validator.execute.request import LaunchRequest
from validator.workload import megatron_internals, plugins
from validator.workload.megatron_internals import Hooks


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> list[Hooks]:
    """In the place of Megatron's loop: holds the hooks that were handed to it."""
    held: list[Hooks] = []
    monkeypatch.setattr(megatron_internals, "observe_training", held.append)
    monkeypatch.setattr(plugins, "TrainingState", lambda *_: SimpleNamespace(modules=["chunk"]))
    monkeypatch.setenv("RANK", "1")
    return held


def request(folder: Path) -> LaunchRequest:
    return LaunchRequest("cpu", "reference", (), None, 2, 4, 1, folder / "trajectory", folder)


def written(folder: Path, text: str) -> Path:
    file = folder / "fault.py"
    file.write_text(text)
    return file


def told(file: Path, folder: Path, within: Callable[[], object] = lambda: None) -> str:
    with pytest.raises(LaunchError) as caught, plugins.applied(file, request(folder), SimpleNamespace()):
        within()
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


RECORDS = """\
def install(launch):
    calls = launch.arguments.calls
    calls.append(("install", launch.rank, launch.world_size))
    launch.on_setup(lambda: calls.append(("setup", launch.arguments.seed, launch.modules)))
    launch.before_step(lambda step: calls.append(("enter", step)))
    launch.before_update(lambda step: calls.append(("update", step)))
    launch.after_step(lambda step, result: calls.append(("leave", step, result.losses, result.skipped)))
    launch.on_end(lambda: calls.append(("end",)))
"""


def test_moments_are_told_in_order_with_steps_from_1(tmp_path: Path, loop: list[Hooks]) -> None:
    calls: list[object] = []
    with plugins.applied(written(tmp_path, RECORDS), request(tmp_path), SimpleNamespace(calls=calls)):
        (hooks,) = loop
        hooks.on_setup(["model"], "optimizer", "scheduler", SimpleNamespace(seed=7))
        hooks.before_step(0)
        hooks.before_update()
        hooks.after_step({"lm loss": 5.5}, False, 1.0)
        hooks.before_step(1)
        hooks.on_end()
    assert calls == [
        ("install", 1, 2),
        ("setup", 7, ["chunk"]),
        ("enter", 1),
        ("update", 1),
        ("leave", 1, {"lm loss": 5.5}, False),
        ("enter", 2),
        ("end",),
    ]
    assert not list(tmp_path.rglob("__pycache__"))  # the folder is read-only in an image, and shared by all ranks


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_package\ndef install(launch): ...\n",
         "line 1 (<module>): ModuleNotFoundError: No module named 'no_such_package'."),
        ("def install(launch):\n\n    launch.world_size + 'x'\n", "line 3 (install): TypeError: unsupported operand"),
        ("def install(launch):\n    launch.modules\n",
         "line 2 (install): the model is not built yet; use it from on_setup on."),
        ("def install(launch):\n    raise KeyError\n", "line 2 (install): KeyError."),
        ("import sys\ndef install(launch):\n    sys.exit(0)\n", "line 3 (install): SystemExit: 0."),
        ("def install(launch):\n    raise ValueError('one\\ntwo')\n", "line 2 (install): ValueError: one two."),
        ("def install(launch) -> None\n", "line 1: SyntaxError: expected ':'"),
    ],
)  # fmt: skip
def test_a_failure_is_one_sentence_with_the_files_own_line(
    text: str, says: str, tmp_path: Path, loop: list[Hooks], capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = told(written(tmp_path, text), tmp_path)
    assert sentence.startswith(f"the plugin fault.py failed in {says}")
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_install_that_is_no_function_is_told(tmp_path: Path, loop: list[Hooks]) -> None:
    assert told(written(tmp_path, "install = 3\n"), tmp_path) == "the plugin fault.py defines no function install"


WRAPS = """\
import sys, json

def install(launch):
    dumps = json.dumps
    json.dumps = lambda *words: dumps(*words)
    launch.undo = lambda: setattr(json, "dumps", dumps)
"""


def test_an_error_deep_in_something_that_the_plugin_replaced_is_told_too(
    tmp_path: Path, loop: list[Hooks], monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    monkeypatch.setattr(json, "dumps", json.dumps)
    sentence = told(written(tmp_path, WRAPS), tmp_path, lambda: json.dumps(object()))
    assert sentence.startswith("the plugin fault.py failed in line 5 (<lambda>): TypeError: ")


def test_other_errors_are_not_the_plugins(tmp_path: Path, loop: list[Hooks]) -> None:
    file = written(tmp_path, "def install(launch): ...\n")
    with pytest.raises(ZeroDivisionError), plugins.applied(file, request(tmp_path), SimpleNamespace()):
        print(1 // 0)
    with pytest.raises(SystemExit), plugins.applied(file, request(tmp_path), SimpleNamespace()):
        sys.exit(0)
