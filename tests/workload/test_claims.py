"""What a launch claims about itself: the digest of our own code that it loaded, and PyTorch's settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import validator
from validator.workload import claims

#: Run with a copy of the product in front: edits the copy's files and looks at the digest after each edit. Only the
#: modules that are imported here take part.
EDITS = """
import sys
from pathlib import Path
import validator
from validator.workload import adam, claims, corpus, cpu, digests, norm, proofs, recorder, state, step_metrics
from validator.workload.cpu import device, state_space
folder = Path(sys.argv[1])
assert Path(validator.__file__).parent == folder, validator.__file__

sound = claims.workload_digest()
assert len(bytes.fromhex(sound)) == 32
assert claims.workload_digest() == sound

taking_part = ["workload/norm.py", "workload/cpu/state_space.py", "workload/claims.py", "trajectory/leaves.py",
               "trajectory/writer.py"]
seen = {sound}
for name in taking_part:
    file = folder / name
    before = file.read_bytes()
    file.write_bytes(before + b"#")
    seen.add(claims.workload_digest())
    file.write_bytes(before)
    assert claims.workload_digest() == sound, name
assert len(seen) == 1 + len(taking_part)

for name in ["cli.py", "report/markdown.py", "check/run.py", "golden/store.py", "environment/variables.py"]:
    (folder / name).write_bytes(b"")
    assert claims.workload_digest() == sound, name
print(sound)
"""


def digest_of(copy: Path) -> str:
    """The digest of the sound copy; asserts how edits change it."""
    shutil.copytree(Path(validator.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    ran = subprocess.run(
        [sys.executable, "-c", EDITS, str(copy)],
        cwd=copy.parent, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_changed_byte_of_what_takes_part_changes_the_digest_and_nothing_else_does(tmp_path: Path) -> None:
    """Nor does the place: two copies in different folders agree."""
    first, second = (digest_of(tmp_path / name / "validator") for name in ("one", "another"))
    assert first == second


def test_settings_that_can_change_bits_are_told_as_they_are() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    try:
        torch.use_deterministic_algorithms(True)
        assert claims.torch_settings()["deterministic_algorithms"] is True
        torch.use_deterministic_algorithms(False)
        settings = claims.torch_settings()
    finally:
        torch.use_deterministic_algorithms(before)
    assert settings["deterministic_algorithms"] is False
    assert settings["version"] == torch.__version__
    assert settings["threads"] == torch.get_num_threads()
    assert settings["cpu_capability"] == torch.backends.cpu.get_cpu_capability()
