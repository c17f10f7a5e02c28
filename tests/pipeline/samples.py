"""Pipeline files that tests start from."""

from __future__ import annotations

from pathlib import Path

DIGEST = "0123456789abcdef0123456789abcdef"

WAIVER = f"""\
    - gate: resume
      leaf: rng/expert-parallel-rng
      seen:
      - {{restore: 3, ranks: [1], moments: setup:3 .. end, observed: "{DIGEST}"}}
      - {{restore: 6, ranks: [1], moments: setup:6 .. end, observed: "{DIGEST}"}}
      reason: the checkpoint keys random states by pipeline and tensor rank only
      link: https://github.com/NVIDIA/Megatron-LM/pull/6858
      expires: 2027-05-31
"""

VALID = f"""\
name: small
description: a small pipeline
computation:
  device: cpu
  nodes: 1
  ranks: 2
  steps: 10
  seed: 1234
  spec: reference
  data:
    corpus: {{documents: 200, vocabulary: 512, seed: 7}}
  arguments: |
    --hidden-size 64 --hybrid-layer-pattern "MEM*E/*E"   # Mamba, experts, attention
    --expert-model-parallel-size 2
    --micro-batch-size 1 --global-batch-size 4 --vocab-size 512
  variables:
    ATEN_CPU_CAPABILITY: default
    OMP_NUM_THREADS: 1
policy:
  gates: {{golden: required, repeatability: advisory, resume: required}}
  resume:
    saves:
    - {{step: 3, mode: synchronous}}
    - {{step: 6, mode: asynchronous}}
  limits: {{launch_seconds: 300}}
  waivers:
{WAIVER}"""


def write(folder: Path, text: str, name: str = "small") -> Path:
    """``text`` as a pipeline file of that name."""
    file = folder / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def without_waivers(text: str) -> str:
    return text[: text.index("  waivers:")]
