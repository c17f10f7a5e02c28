"""How long it takes, and how much memory, to compare two large trajectories.

    python benchmarks/compare_scale.py [--ranks 1024] [--steps 1000] [--leaves 500] [--folder DIR]

Writes three trajectories into a temporary folder, seals them, compares them in a process of their own each, prints the
figures beside their targets, and removes everything. At full scale it takes about 6 GB of disk and several minutes,
most of it for writing and sealing.

Ranks share one leaves file by hard links, and files that are equal in two trajectories are one file. So each leaf
digest is read and compared 1,024 times, but from the page cache: times do not include waiting for a disk.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import xxhash

from validator.compare import compare
from validator.trajectory import lines
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import leaves_name, text_name
from validator.trajectory.leaves import LeafKey, LeafTable
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord
from validator.trajectory.seal import seal
from validator.trajectory.writer import RankWriter

#: Share of each group in the leaves; the metrics come on top of the rest.
SHARES = {
    Group.BATCH: 0.01,
    Group.GRADIENTS: 0.2,
    Group.PARAMETERS: 0.2,
    Group.MAIN_PARAMETERS: 0.19,
    Group.OPTIMIZER: 0.38,
    Group.RNG: 0.01,
}
METRICS = 5
SECONDS, PEAK_MB = 1.0, 500.0


def write_template(folder: Path, steps: int, leaves: int, change: Callable[[int, bytes], bytes]) -> None:
    """One rank's files; ``change(step, digests)`` may replace the digests of all leaves of a step."""
    sizes = {group: max(1, int(share * (leaves - METRICS))) for group, share in SHARES.items()}
    sizes[Group.OPTIMIZER] += leaves - METRICS - sum(sizes.values())
    tables = {
        group: LeafTable(
            tuple(
                LeafKey(f"decoder.layers.{index}.{group}", "float32", (4096,), "0:4096/65536") for index in range(size)
            )
        )
        for group, size in sizes.items()
    }
    with RankWriter(folder, 0, 1) as writer:
        for step in range(1, steps + 1):
            digests = change(step, np.random.default_rng(step).bytes(16 * (leaves - METRICS)))
            groups, at = {}, 0
            for group, table in tables.items():
                groups[group] = GroupRecord(table, digests[at : at + 16 * len(table)])
                at += 16 * len(table)
            metrics = {f"loss {index}": Metric.of(10.0 / step + index, "float32") for index in range(METRICS)}
            writer.append(Moment(step), groups, metrics)
        writer.close({"layout": {"tp": 0, "pp": 0}})


def write_rank(template: Path, folder: Path, rank: int, ranks: int) -> None:
    """The template as another rank: the header and all seals anew, the leaves by a link."""
    os.link(template / leaves_name(0), folder / leaves_name(rank))
    leaves = memoryview((template / leaves_name(0)).read_bytes())
    _, text = (template / text_name(0)).read_bytes().split(b"\n", 1)
    out = [lines.header_line(rank, ranks).encode()]
    chain = xxhash.xxh3_128(out[0])
    at = leaves_at = 0
    # A moment's leaves are as many as its group lines say.
    for closing in re.finditer(rb'^\{"(?:moment|end)":.*\n', text, re.MULTILINE):
        body = text[at : closing.start()]
        size = 16 * sum(int(found[1]) for found in re.finditer(rb'^\{"group":.*?"leaves":(\d+)', body, re.MULTILINE))
        chain.update(body)
        chain.update(leaves[leaves_at : leaves_at + size])
        line = closing[0][: -lines.SEAL_SUFFIX_BYTES]
        chain.update(line)
        sealed = lines.sealed(line.decode(), chain.digest()).encode()
        chain.update(sealed[-lines.SEAL_SUFFIX_BYTES :])
        out += [body, sealed]
        at, leaves_at = closing.end(), leaves_at + size
    (folder / text_name(rank)).write_bytes(b"".join(out))


def write_trajectory(
    folder: Path, ranks: int, template: Path, share: Path | None = None, own: Sequence[int] = ()
) -> None:
    """A sealed trajectory from a template; with ``share``, all ranks but ``own`` are those of another trajectory."""
    folder.mkdir()
    begin = time.perf_counter()
    for rank in range(ranks):
        if share is not None and rank not in own:
            for name in (text_name(rank), leaves_name(rank)):
                os.link(share / name, folder / name)
        else:
            write_rank(template, folder, rank, ranks)
    written = time.perf_counter()
    seal(folder, {"pipeline": "benchmark"}, {})
    print(
        f"  {folder.name}: written in {written - begin:.0f} s, sealed in {time.perf_counter() - written:.0f} s",
        flush=True,
    )


def measure(expected: Path, observed: Path, verify: bool) -> dict[str, object]:
    """Open and compare, in this process."""
    begin = time.perf_counter()
    left, right = Trajectory.open(expected, verify), Trajectory.open(observed, verify)
    opened = time.perf_counter()
    found = compare(left, right)
    compared = time.perf_counter()
    # VmHWM and not ru_maxrss, which a process inherits from the one that started it.
    status = Path("/proc/self/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    first = found.first
    return {
        "open": opened - begin,
        "compare": compared - opened,
        "peak_mb": int(peak[1]) * 1024 / 1e6,
        "first": first.sentence if first else "equal",
        "differing": sum(spread.differing for spread in found.spread),
        "rows": len(found.spread),
        "leaves": found.leaves_compared,
    }


def report(name: str, expected: Path, observed: Path, limit: float | None, verify: bool = False) -> bool:
    """Measure in a process of its own, print, and say whether the targets hold."""
    command = [sys.executable, __file__, "--measure", str(expected), str(observed), *(["--verify"] if verify else [])]
    figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    holds = figures["peak_mb"] <= PEAK_MB and (limit is None or figures["compare"] <= limit)
    print(f"{name}:")
    print(f"  opening    {figures['open']:8.2f} s" + ("   (SHA-256 of every file of both)" if verify else ""))
    print(f"  comparing  {figures['compare']:8.2f} s" + (f"   (target {limit:g} s)" if limit else ""))
    print(f"  peak RSS   {figures['peak_mb']:8.0f} MB  (target {PEAK_MB:g} MB)")
    print(f"  {figures['differing']:,} of {figures['leaves']:,} leaves differ, in {figures['rows']:,} moments × groups")
    print(f"  first: {figures['first']}", flush=True)
    return holds


def main() -> int:
    """Run the benchmark; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=500, help="a rank and step")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made (6 GB at full scale)")
    parser.add_argument("--measure", type=Path, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--verify", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        expected, observed = options.measure
        print(json.dumps(measure(expected, observed, options.verify)))
        return 0

    ranks, steps, leaves = options.ranks, options.steps, options.leaves
    folder = Path(tempfile.mkdtemp(prefix="compare-scale-", dir=options.folder))
    try:
        print(f"{ranks:,} ranks × {steps:,} steps × {leaves:,} leaves", flush=True)
        one_step, from_step, rank = steps * 3 // 4, steps // 10 + 1, ranks * 2 // 3
        templates = {
            "base": lambda _step, digests: digests,
            "one": lambda step, digests: digests[:-16] + bytes(16) if step == one_step else digests,
            "all": lambda step, digests: bytes(byte ^ 255 for byte in digests) if step >= from_step else digests,
        }
        for name, change in templates.items():
            write_template(folder / f"template-{name}", steps, leaves, change)
        base, equal, one, every = (folder / name for name in ("expected", "equal", "one", "all"))
        write_trajectory(base, ranks, folder / "template-base")
        shutil.copytree(base, equal, copy_function=os.link)
        write_trajectory(one, ranks, folder / "template-one", share=base, own=[rank])
        write_trajectory(every, ranks, folder / "template-all")
        holds = [
            report("equal", base, equal, SECONDS),
            report("one leaf differs", base, one, SECONDS),
            report(f"all leaves differ from step {from_step} on", base, every, None),
            report("one leaf differs, opened with verification", base, one, SECONDS, verify=True),
        ]
    finally:
        shutil.rmtree(folder)
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
