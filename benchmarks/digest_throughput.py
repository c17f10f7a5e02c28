"""How fast the recorder digests tensors on the CPU, against raw xxh3-128 on the same buffer.

    python benchmarks/digest_throughput.py [--megabytes 256] [--tensors 1000] [--rounds 15]

A buffer of 256 MB is digested as one tensor, and as 1,000 tensors, by the recorder's own path from named tensors to a
group's record (``Digester.record``), and by xxh3-128 alone, one call a tensor over the same bytes. Rounds alternate, a
figure is the median of its rounds, and time is this thread's CPU time, which other processes disturb least.
Target: 90 %.

Tensors of 4 KiB are shown without a target: there a call of Python costs more than the bytes, on either side.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import xxhash

from validator.trajectory.groups import Group
from validator.workload.digests import Digester, plain_torch
from validator.workload.state import Leaf

TARGET = 0.90


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this thread for one call."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def compare(size: int, tensors: int, rounds: int) -> tuple[float, float]:
    """CPU seconds over ``size`` bytes in ``tensors`` tensors: xxh3-128 alone, and the recorder."""
    buffer = torch.randint(0, 256, (size,), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    pieces = [piece.view(torch.float32) for piece in buffer.split(size // tensors)]
    leaves = [Leaf(f"layer{index}.weight", piece, f"0:{piece.numel()}/{size}") for index, piece in enumerate(pieces)]
    contents = [piece.view(torch.uint8).numpy() for piece in pieces]
    digester = Digester()

    def raw() -> None:
        for content in contents:
            xxhash.xxh3_128_digest(content)

    with plain_torch():  # as in a launch
        raw()
        digester.record(Group.PARAMETERS, leaves)
        times = [(seconds(raw), seconds(lambda: digester.record(Group.PARAMETERS, leaves))) for _ in range(rounds)]
    return statistics.median(first for first, _ in times), statistics.median(second for _, second in times)


def main() -> int:
    """Print both figures; the exit status is 1 where the target is missed."""
    parser = argparse.ArgumentParser(description="Throughput of the recorder's digest against raw xxh3-128.")
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    size = options.megabytes * 1_000_000 // (4 * options.tensors) * 4 * options.tensors

    held = True
    for tensors, total, judged in (
        (1, size, True),
        (options.tensors, size, True),
        (options.tensors, options.tensors * 4096, False),
    ):
        raw, ours = compare(total, tensors, options.rounds)
        held = held and (raw / ours >= TARGET or not judged)
        print(
            f"{tensors:5} tensors of {total // tensors:>11,} bytes: {total / ours / 1e9:6.2f} GB/s, raw xxh3-128 "
            f"{total / raw / 1e9:6.2f} GB/s: {raw / ours:.1%}, {(ours - raw) / tensors * 1e6:.2f} µs a tensor on top"
            + ("" if judged else " (not judged)")
        )
    print(f"target {TARGET:.0%}: {'held' if held else 'missed'}")
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
