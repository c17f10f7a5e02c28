"""How fast leaves are digested on a GPU, against what the GPU can read at all, and against other ways to digest.

    python benchmarks/gpu/digest_throughput.py [--gigabytes 1] [--tensors 1000] [--rounds 20] [--json FILE]

The same buffer is: copied on the device (its read rate is what is compared with); digested as one tensor, and as many
tensors at whole and at cut words, by the recorder's kernel and by its PyTorch fallback; put through
``torch.hash_tensor`` where PyTorch has it; and copied to the host and put through SHA-256. Times are CUDA events' (the
last one: wall clock), a figure is the median of its rounds. Target: 80 % of the copy's read rate as one tensor.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from validator.workload.cuda.contents import Contents
from validator.workload.cuda.implementation import choose
from validator.workload.cuda.plain import PlainLanes

TARGET = 0.80


def device_seconds(work: Callable[[], object], rounds: int) -> float:
    """Median seconds of ``work`` on the device."""
    work()
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) / 1000)
    return statistics.median(times)


def to_host_and_hashed(buffer: torch.Tensor) -> float:
    """Seconds of a copy to pinned memory and SHA-256 over it."""
    host = torch.empty(buffer.shape, dtype=buffer.dtype, pin_memory=True)
    begun = time.perf_counter()
    host.copy_(buffer)
    hashlib.sha256(host.numpy()).digest()
    return time.perf_counter() - begun


def measure(size: int, tensors: int, rounds: int) -> dict[str, float]:
    """Gigabytes a second, by way."""
    device = torch.device("cuda")
    whole = torch.randint(0, 256, (size + 8,), dtype=torch.uint8, device=device)
    buffer, other = whole[:size], torch.empty(size, dtype=torch.uint8, device=device)
    lanes = torch.zeros((tensors, 2), dtype=torch.int64, device=device)
    chosen = choose(device)
    print(f"{torch.cuda.get_device_name()}, digest by {chosen.sum_lanes.name} {chosen.why}")
    one = Contents.of([buffer])
    pieces = Contents.of(list(buffer.split(size // tensors))[:tensors])
    cut = Contents.of(list(whole[3 : size + 3].split(size // tensors))[:tensors])
    seeds = list(range(tensors))
    ways: dict[str, Callable[[], object]] = {
        "device copy (read)": lambda: other.copy_(buffer),
        "digest, one tensor": lambda: chosen.sum_lanes(one, [1], lanes[:1], "one"),
        f"digest, {tensors} tensors": lambda: chosen.sum_lanes(pieces, seeds, lanes, "many"),
        f"digest, {tensors} tensors at cut words": lambda: chosen.sum_lanes(cut, seeds, lanes, "cut"),
    }
    if hasattr(torch, "hash_tensor"):
        ways["torch.hash_tensor (blind to order)"] = lambda: torch.hash_tensor(buffer.view(torch.int64))
    rates = {name: size / device_seconds(work, rounds) / 1e9 for name, work in ways.items()}
    rates["digest by plain PyTorch"] = size / device_seconds(lambda: PlainLanes()(one, [1], lanes[:1]), 3) / 1e9
    rates["copy to host and SHA-256"] = size / statistics.median(to_host_and_hashed(buffer) for _ in range(2)) / 1e9
    return rates


def main() -> int:
    """Print all figures; the exit status is 1 where the target is missed."""
    parser = argparse.ArgumentParser(description="Throughput of the digest on a GPU.")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("This benchmark needs a CUDA device, and PyTorch finds none.", file=sys.stderr)
        return 2
    size = int(options.gigabytes * 1e9) // (8 * options.tensors) * 8 * options.tensors
    rates = measure(size, options.tensors, options.rounds)
    copy = rates["device copy (read)"]
    for name, rate in rates.items():
        print(f"{name:42} {rate:9.1f} GB/s  {rate / copy:7.1%}")
    share = rates["digest, one tensor"] / copy
    held = share >= TARGET
    print(f"{share:.1%} of the copy's read rate; target {TARGET:.0%}: {'held' if held else 'MISSED'}")
    if options.json is not None:
        found = {"bytes": size, "gigabytes_per_second": rates, "share_of_copy": share, "target": TARGET, "held": held}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
