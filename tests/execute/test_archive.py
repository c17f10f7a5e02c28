"""Names that an image's archive carries are taken out on the way to the engine."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from validator.errors import UsageError
from validator.execute.archive import check_archive, load_archive, nameless
from validator.execute.docker_engine import LOADED, Engine
from validator.execute.owner import Owner

MANIFEST = [{"Config": "c", "RepoTags": ["company/base:1"], "Layers": ["layer.tar"]}]


def archive(file: Path, *parts: dict[str, Any] | tarfile.TarInfo) -> Path:
    """Of files by name, and of members that hold nothing."""
    mode: Any = {".gz": "w:gz", ".xz": "w:xz"}.get(file.suffix, "w")
    with tarfile.open(file, mode) as made:
        for part in parts:
            if isinstance(part, tarfile.TarInfo):
                made.addfile(part)
                continue
            for name, content in part.items():
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                member = tarfile.TarInfo(name)
                member.size = len(data)
                made.addfile(member, io.BytesIO(data))
    return file


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member


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


@pytest.mark.parametrize("before", ["./", "/", "x/../", "../", ".//"])
def test_names_are_those_that_the_engine_makes_of_them(tmp_path: Path, before: str) -> None:
    index = {"manifests": [{"annotations": {"io.containerd.image.name": "company/base:1"}}]}
    named = {"manifest.json": MANIFEST, "index.json": index, "repositories": {"company/base": {"1": "abc"}}}
    file = archive(tmp_path / "image.tar", {f"{before}{name}": content for name, content in named.items()})
    assert passed_on(file) == {
        "manifest.json": [{"Config": "c", "RepoTags": None, "Layers": ["layer.tar"]}],
        "index.json": {"manifests": [{"annotations": {}}]},
    }


def test_fields_are_names_in_small_letters_too(tmp_path: Path) -> None:
    """An engine takes the last of two fields that differ in capital letters only."""
    entry = MANIFEST[0] | {"repotags": ["company/base:1"], "REPOTAGS": ["company/base:2"]}
    index = {"Manifests": [{"Annotations": {"org.opencontainers.image.ref.name": "1"}}]}
    assert passed_on(archive(tmp_path / "image.tar", {"manifest.json": [entry], "index.json": index})) == {
        "manifest.json": [MANIFEST[0] | {"RepoTags": None, "repotags": None, "REPOTAGS": None}],
        "index.json": {"Manifests": [{"Annotations": {}}]},
    }


def test_a_header_says_one_thing_only(tmp_path: Path) -> None:
    """Two names in one: Python goes by the second, and the engine by the first."""
    file, text = tmp_path / "image.tar", json.dumps(MANIFEST).encode()
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as made:
        member = tarfile.TarInfo("layer.tar")
        member.size, member.pax_headers = len(text), {"path": "manifest.json", "GNU.sparse.name": "layer.tar"}
        made.addfile(member, io.BytesIO(text))
    with nameless(file) as stream:
        passed = stream.read()
    assert b"manifest.json" not in passed
    assert b"layer.tar" in passed


REFUSED = {
    "link": ([link("manifest.json", "other"), {"other": MANIFEST}], "manifest.json is no plain file"),
    "hard link": ([{"a": MANIFEST}, link("./index.json", "a", tarfile.LNKTYPE)], "index.json is no plain file"),
    "linked list": ([link("repositories", "a")], "repositories is no plain file"),
    "folder": ([link("manifest.json", "", tarfile.DIRTYPE)], "manifest.json is no plain file"),
    "twice": ([{"manifest.json": MANIFEST, "./manifest.json": MANIFEST}], "it holds manifest.json twice"),
    "below a link": ([link("a", "."), {"a/manifest.json": MANIFEST}], "a/manifest.json lies below a link"),
    "below two": ([link("a", "."), {"a/b/c": b""}], "a/b/c lies below a link"),
    "device": ([link("disk", "", tarfile.BLKTYPE)], "disk is neither a file nor a folder nor a link"),
    "unknown": ([link("\x1bx", "", b"Z")], r"its \\x1bx is neither a file nor a folder nor a link"),
    "two images": ([{"manifest.json": MANIFEST * 2}], "it holds 2 images"),
    "half": ([{"manifest.json": b"{"}], "manifest.json is no readable JSON"),
    "deep": ([{"index.json": b"[" * 100_000}], "index.json is no readable JSON"),
    "deep and whole": ([{"index.json": b"[" * 2000 + b"]" * 2000}], "index.json is no readable JSON"),
    "large": ([{"index.json": bytes(5 << 20)}], "index.json has 5242880 bytes"),
}


@pytest.mark.parametrize(("parts", "why"), REFUSED.values(), ids=REFUSED)
def test_what_could_bring_in_a_name_is_refused_by_us_and_by_the_engine(tmp_path: Path, parts: Any, why: str) -> None:
    file = archive(tmp_path / "image.tar", {"layer.tar": b"x"}, *parts, {"after.tar": b"x"})
    passed = b""
    with pytest.raises(UsageError, match=rf"cannot be read as an archive \((its )?{why}\)"), nameless(file) as stream:
        passed = stream.read()
    assert len(passed) % 512 == 0
    assert passed.endswith(b"\xff" * 512)  # where a header or the end has to be: without it this would be an archive


@pytest.mark.parametrize("told", [{"manifests": 5}, {"manifests": [5]}, {"manifests": {"annotations": 5}}, 5, None])
def test_an_index_of_any_shape_is_passed_on(tmp_path: Path, told: object) -> None:
    assert passed_on(archive(tmp_path / "image.tar", {"index.json": told})) == {"index.json": told}


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.xz"])
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_archive_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], suffix: str, damage: str
) -> None:
    file = archive(
        tmp_path / f"image{suffix}", {"layer.tar": hashlib.shake_128(b"1").hexdigest(1 << 19).encode(), "b": b"x"}
    )
    content = file.read_bytes()
    half = len(content) // 2
    other = bytes(255 - byte for byte in content[half : half + 1000])
    file.write_bytes(content[:half] + (b"" if damage == "cut" else other + content[half + 1000 :]))
    check_archive(file)  # its beginning is one
    why = r"cannot be read as an archive \(.+\); change --image\.$"
    with pytest.raises(UsageError, match=why), nameless(file) as stream:
        stream.read()
    assert capfd.readouterr() == ("", "")


def test_a_size_that_no_file_has_is_one_sentence(tmp_path: Path) -> None:
    member = tarfile.TarInfo("layer.tar")
    member.size = 1 << 80
    file = tmp_path / "image.tar"
    file.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    with pytest.raises(UsageError, match=r"image\.tar cannot be read as an archive"), nameless(file) as stream:
        stream.read()


def test_archives_of_one_process_have_tags_of_their_own(tmp_path: Path) -> None:
    tagged: list[str] = []

    class Images:
        def get(self, name: str) -> Any:
            return SimpleNamespace(id=name, tag=lambda repository, tag: tagged.append(f"{repository}:{tag}"))

    class Api:
        def load_image(self, stream: Any) -> list[dict[str, str]]:
            digest = hashlib.sha256(stream.read()).hexdigest()
            return [{"stream": f"Loaded image ID: sha256:{digest}\n"}]

    engine = Engine(SimpleNamespace(api=Api(), images=Images()), "unix:///nowhere")
    files = [archive(tmp_path / f"{name}.tar", {"layer.tar": name.encode()}) for name in "ab"]
    loaded = [load_archive(engine, file, Owner.current()) for file in files]
    assert tagged == [tag for _, tag in loaded]
    assert len({identity for identity, _ in loaded}) == len(set(tagged)) == 2
    assert all(tag.startswith(f"{LOADED}:") for tag in tagged)


def test_an_engine_that_stops_listening_ends_the_reading(tmp_path: Path) -> None:
    file = archive(tmp_path / "image.tar", {"layer.tar": bytes(10 << 20)})
    with nameless(file) as stream:
        stream.read(10)
