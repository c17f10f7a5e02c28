"""Reads a trajectory as docs/trajectory-format.md describes it, without the code that wrote it."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pytest
import xxhash

from tests.trajectory.synthetic import Launch

GROUPS = (
    *("metrics", "batch", "gradients", "parameters", "gathered_parameters", "main_parameters", "optimizer"),
    *("buffers", "rng", "data_position", "schedule"),
)


def fold(children: list[tuple[str, bytes]]) -> bytes:
    text = b"".join(struct.pack("<I", len(name.encode())) + name.encode() + digest for name, digest in children)
    return xxhash.xxh3_128_digest(text)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Launch().seal(tmp_path_factory.mktemp("format")).directory


@pytest.fixture(scope="module")
def summary(directory: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((directory / "trajectory.json").read_text())
    return loaded


def read_rank(directory: Path, rank: int) -> dict[str, dict[str, bytes]]:
    """Moment -> group -> digest, everything recomputed from leaves on the way; ``""`` is the rank's digest."""
    leaves = (directory / f"rank-{rank:05d}.leaves").read_bytes()
    before, at, moments = b"", 0, {}
    tables: list[list[dict[str, Any]]] = []
    groups: dict[str, bytes] = {}
    metrics: list[dict[str, Any]] = []
    start = 0
    for raw in (directory / f"rank-{rank:05d}.jsonl").read_bytes().splitlines(keepends=True):
        line = json.loads(raw)
        kind = next(iter(line))
        if kind == "table":
            tables.append([])
        elif kind == "leaf":
            tables[-1].append(line)
        elif kind == "metric":
            metrics.append(line)
        elif kind == "group":
            digests = leaves[at : at + 16 * line["leaves"]]
            at += len(digests)
            names = "\n".join(leaf["leaf"] for leaf in tables[line["table"]])
            groups[line["group"]] = xxhash.xxh3_128_digest(xxhash.xxh3_128_digest(names.encode()) + digests)
            assert groups[line["group"]].hex() == line["digest"]
            if line["group"] == "metrics":
                seeds = [xxhash.xxh3_64_intdigest(f"{metric['dtype']}||".encode()) for metric in metrics]
                contents = [bytes.fromhex(metric["bits"])[::-1] for metric in metrics]
                answers = [xxhash.xxh3_128_digest(c, seed=s) for c, s in zip(contents, seeds, strict=True)]
                assert b"".join(answers) == digests
        elif kind in ("moment", "end"):
            unsealed = raw[: raw.rindex(b',"seal"')]
            before += leaves[start:at] + unsealed
            assert line["seal"] == xxhash.xxh3_128_hexdigest(before)
            before += raw[len(unsealed) :]
            if kind == "moment":
                assert list(groups) == [name for name in GROUPS if name in groups]
                moments[line["moment"]] = {"": fold(list(groups.items())), **groups}
                assert moments[line["moment"]][""].hex() == line["digest"]
            start, groups, metrics = at, {}, []
            continue
        before += raw
    assert at == len(leaves)
    return moments


def test_rank_files_fold_to_the_root_of_the_summary(directory: Path, summary: dict[str, Any]) -> None:
    ranks = [read_rank(directory, rank) for rank in (0, 1)]
    moments = []
    for name, fact in summary["moments"].items():
        moments.append((name, fold([(f"rank:{rank}", read[name][""]) for rank, read in enumerate(ranks)])))
        assert moments[-1][1].hex() == fact["digest"]
    assert fold(moments).hex() == summary["root"]


def test_the_summary_covers_itself_and_every_file(directory: Path, summary: dict[str, Any]) -> None:
    text = (directory / "trajectory.json").read_text()
    own = text[: text.rindex(',\n "digest"')]
    assert summary["digest"] == hashlib.sha256(own.encode()).hexdigest()
    for name, fact in summary["files"].items():
        content = (directory / name).read_bytes()
        assert fact == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_the_tree_points_at_text_and_leaves(directory: Path, summary: dict[str, Any]) -> None:
    tree = (directory / "tree.bin").read_bytes()
    rows = [struct.unpack_from("<16sQII", tree, at) for at in range(0, len(tree), 32)]
    moments, groups = list(summary["moments"]), summary["groups"]
    ranks = summary["ranks"]
    assert len(rows) == len(ranks) * len(moments) * (1 + len(groups)) + summary["tables"]
    tables = rows[len(rows) - summary["tables"] :]
    for position, rank in enumerate(ranks):
        read = read_rank(directory, rank)
        text = (directory / f"rank-{rank:05d}.jsonl").read_bytes()
        for index, moment in enumerate(moments):
            digest, offset, size, _ = rows[position * len(moments) + index]
            assert digest == read[moment][""]
            lines = [json.loads(line) for line in text[offset : offset + size].splitlines()]
            assert lines[-1]["moment"] == moment
            base = len(ranks) * len(moments) + (position * len(moments) + index) * len(groups)
            for column, group in enumerate(groups):
                digest, offset, table, count = rows[base + column]
                if group not in read[moment]:
                    assert table == 0xFFFFFFFF
                    continue
                assert digest == read[moment][group]
                assert tables[table][3] == count
                own = tables[table]
                home = (directory / f"rank-{own[2]:05d}.jsonl").read_bytes()[own[1] :].splitlines(keepends=True)
                assert home[0].startswith(b'{"table":')
                assert own[0] == xxhash.xxh3_128_digest(b"".join(home[1 : 1 + count]))


@pytest.mark.parametrize(
    "line",
    [
        '{"schema":"validator/rank","version":1,"algorithm":"xxh3-128/1","rank":0,"world_size":2}',
        '{"leaf":"gradient norm","dtype":"float32","shape":[],"shard":""}',
        '{"metric":"loss","dtype":"float64","bits":"401c000000000000","value":"7.0"}',
        '{"metric":"gradient norm","dtype":"float32","bits":"3dcccccd","value":"0.10000000149011612"}',
    ],
)
def test_lines_of_the_page_are_lines_of_a_file(directory: Path, line: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "trajectory-format.md"
    for text in (page.read_text(), (directory / "rank-00000.jsonl").read_text()):
        assert line in text.splitlines()


def test_this_version_of_the_format_gives_this_root(summary: dict[str, Any]) -> None:
    # Goldens of version 1 stay readable and comparable: where this changes, so must the algorithm's version.
    assert summary["root"] == "9376a62d14377afa79d253cc4b31cc0a"
