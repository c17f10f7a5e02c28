"""A change in one module of a real Megatron, found with file and line; and what tracing leaves alone."""

from __future__ import annotations

import ast
import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.command import NO_RESUME, ROOT, check, copy_of
from validator.golden import GoldenStore
from validator.trajectory.groups import Moment

pytestmark = [pytest.mark.slow, pytest.mark.system]

ROUTER = "megatron/core/transformer/moe/router.py"

#: From its second step on, the router's scores are a little larger.
PLANTED = """
        from megatron.training import get_args
        if get_args().curr_iteration >= 1:
            logits = logits * (1 + 2.0**-18)
"""


def changed_megatron(folder: Path) -> Path:
    """A copy of the installed Megatron with one change, in the router of the experts."""
    found = importlib.util.find_spec("megatron.core")
    assert found is not None
    assert found.origin is not None
    installed = Path(found.origin).parents[1]
    shutil.copytree(installed, folder / "megatron", ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / ROUTER
    before, call, after = file.read_text().partition("        logits = self.gating(input)\n")
    assert call
    file.write_text(before + call + PLANTED + after)
    return folder


def line_of_forward(file: Path, name: str) -> int:
    """The first line of a class's ``forward``, decorators included."""
    (kind,) = [
        node for node in ast.parse(file.read_text()).body if isinstance(node, ast.ClassDef) and node.name == name
    ]
    (forward,) = [node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    return min([forward.lineno, *(decorator.lineno for decorator in forward.decorator_list)])


def test_a_change_in_one_module_is_localised_to_it(tmp_path: Path) -> None:
    changed = changed_megatron(tmp_path / "changed")
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME, {"repeatability: required": "repeatability: off"})
    checked = check(
        tmp_path, pipeline, "--megatron", str(changed), "--localise", "--golden", str(ROOT / "golden")
    )  # fmt: skip
    assert (checked.code, checked.verdict) == (1, "changed")
    found = checked.report["localisation"]
    assert (found["outcome"], found["step"], found["phase"]) == ("module", 2, "forward")
    assert (found["module"], found["module_class"]) == ("decoder.layers.1.mlp.router", "TopKRouter")
    assert (found["file"], found["line"]) == (ROUTER, line_of_forward(changed / ROUTER, "TopKRouter"))
    assert all(value["expected"] == value["observed"] for value in found["inputs"])
    assert f"code      {ROUTER}:{found['line']}" in checked.out
    # The traced launch of the golden's side has the bits of the golden, which was recorded without a trace.
    golden = GoldenStore(ROOT / "golden").find("nemotron-cpu", checked.report["hardware_class"])
    assert golden is not None
    traced = checked.trajectory("trace-golden-expected")
    assert Moment(2) in traced.moments
    assert all(traced.moment_digest(each) == golden.trajectory.moment_digest(each) for each in traced.moments)
