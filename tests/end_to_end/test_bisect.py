"""``validator bisect`` on real packages and real training: one of seven changes moves the bits."""

from __future__ import annotations

import json
import math
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.diagnose.bisect.double import real_files
from tests.diagnose.bisect.wheels import make_wheel
from tests.end_to_end.command import validator

#: Older releases of packages that the workload's environment imports, from the index.
OLDER = {
    "filelock": "3.20.0", "fsspec": "2025.9.0", "networkx": "3.5", "packaging": "25.0", "psutil": "7.1.3",
    "typing-extensions": "4.15.0",
}  # fmt: skip

#: An einops whose rearrange, which Megatron's Mamba layer calls, is off by one unit in the last place.
OFF_BY_ONE = """

_rearrange = rearrange


def rearrange(tensor, pattern, **axes_lengths):
    import torch

    result = _rearrange(tensor, pattern, **axes_lengths)
    return result * (1 + torch.finfo(result.dtype).eps) if result.is_floating_point() else result
"""


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_package_that_changes_bits_is_found_with_its_module(tmp_path: Path) -> None:
    files = dict(real_files("einops"))
    files["einops/einops.py"] += OFF_BY_ONE
    make_wheel(tmp_path / "wheels", "einops", "99.0", files)
    before = {**OLDER, "einops": metadata.version("einops")}
    after = {**{name: metadata.version(name) for name in OLDER}, "einops": "99.0"}
    for name, versions in (("before.txt", before), ("after.txt", after)):
        (tmp_path / name).write_text("".join(f"{each}=={version}\n" for each, version in versions.items()))
    ran = validator(
        "bisect", "nemotron-cpu", str(tmp_path / "before.txt"), str(tmp_path / "after.txt"), "--base", sys.prefix,
        "--find-links", str(tmp_path / "wheels"), "--out", str(tmp_path / "out"),
        "--json", str(tmp_path / "found.json"),
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found["changes"]) == 7
    assert [(each["name"], each["after"]) for each in found["culprits"]] == [("einops", "99.0")]
    assert found["launches"] - 2 <= 2 * math.ceil(math.log2(7)) + 2  # two more, with a trace, name the module
    assert found["divergence"]["moment"] == "step:1"
    module = found["localisation"]
    assert (module["outcome"], module["step"], module["phase"]) == ("module", 1, "forward")
    assert (module["module"], module["module_class"]) == ("decoder.layers.0.mixer", "MambaMixer")
    assert f"{tmp_path / 'before.txt'} computes the golden's bits." in found["remarks"]
    assert ran.out.startswith("FOUND  One of 7 package changes flips the outcome: einops ")
