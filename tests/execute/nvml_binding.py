"""NVIDIA's binding as a file, for processes of other interpreters: the double, on a machine with two GPUs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]

_MODULE = """\
import sys
from pathlib import Path

sys.path.insert(0, {repository!r})
from tests.environment.nvml_double import Board, Nvml


class Machine(Nvml):
    def nvmlInit(self):
        self.boards = (Board(), Board(uuid="GPU-2", uncorrected=int(Path({hit!r}).exists())))
        super().nvmlInit()


machine = Machine()
globals().update({{name: getattr(machine, name) for name in dir(machine) if not name.startswith("_")}})
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put it where the product finds it. GPU 1 counts an uncorrected error once the file exists that is returned."""
    hit = folder / "hit"
    (folder / "binding").mkdir()
    (folder / "binding" / "pynvml.py").write_text(_MODULE.format(repository=str(_REPOSITORY), hit=str(hit)))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.syspath_prepend(str(folder / "binding"))
    return hit


def python_that_hits(folder: Path, python: Path, hit: Path) -> Path:
    """An interpreter below which a GPU counts an error as soon as the launch itself begins."""
    script = folder / "python-that-hits"
    script.write_text(f'#!/bin/sh\n[ "$1" = -m ] && touch {hit}\nexec {python} "$@"\n')
    script.chmod(0o755)
    return script
