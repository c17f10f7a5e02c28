"""Names that an image's archive carries are taken out on the way to the engine."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from validator.errors import UsageError
from validator.execute.archive import nameless


def archive(file: Path, members: dict[str, Any]) -> Path:
    with tarfile.open(file, "w:gz" if file.suffix == ".gz" else "w") as made:
        for name, content in members.items():
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    return file


def passed_on(file: Path) -> dict[str, Any]:
    with nameless(file) as stream, tarfile.open(fileobj=stream, mode="r|") as read:
        found = {}
        for member in read:
            content = read.extractfile(member)
            assert content is not None
            data = content.read()
            found[member.name] = json.loads(data) if member.name.endswith(".json") else data
        stream.read()
        return found


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz"])
def test_tags_go_and_the_rest_stays(tmp_path: Path, suffix: str) -> None:
    layer = bytes(range(256)) * 5000
    name = {"org.opencontainers.image.ref.name": "1", "io.containerd.image.name": "company/base:1", "kept": "x"}
    file = archive(
        tmp_path / f"image{suffix}",
        {
            "layer.tar": layer,
            "repositories": {"company/base": {"1": "abc"}},
            "manifest.json": [{"Config": "c", "RepoTags": ["company/base:1"], "Layers": ["layer.tar"]}],
            "index.json": {"manifests": [{"digest": "d", "annotations": name}]},
        },
    )
    assert passed_on(file) == {
        "layer.tar": layer,
        "manifest.json": [{"Config": "c", "RepoTags": None, "Layers": ["layer.tar"]}],
        "index.json": {"manifests": [{"digest": "d", "annotations": {"kept": "x"}}]},
    }


def test_a_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    file = archive(tmp_path / "image.tar", {"manifest.json": b"{"})
    with pytest.raises(UsageError, match="cannot be read as an archive"), nameless(file) as stream:
        stream.read()


def test_an_engine_that_stops_listening_ends_the_reading(tmp_path: Path) -> None:
    file = archive(tmp_path / "image.tar", {"layer.tar": bytes(10 << 20)})
    with nameless(file) as stream:
        stream.read(10)
