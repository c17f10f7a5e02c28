"""Archives of images and a real engine: no archive moves a name that is trusted here, and none stays behind."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system.engine import Engine, tiny
from validator.errors import UsageError
from validator.execute.docker_engine import LOADED
from validator.execute.docker_engine import Engine as Product
from validator.execute.image import find_image

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

#: Members of an archive by name: content, or what a link names.
Members = dict[str, bytes | str]


@pytest.fixture
def trusted(engine: Engine) -> Iterator[str]:
    """The ID of the image ``victim:1``."""
    identity = engine.add(tiny(), "victim:1")
    yield identity
    engine.client.images.remove("victim:1", force=True)


def saved(engine: Engine, value: str) -> Members:
    """What ``docker save`` writes of another image that is called ``victim:1``, and that is gone afterwards."""
    trusted = engine.client.images.get("victim:1")
    engine.build("victim:1", f"FROM victim:1\nENV VALUE={value}\n")
    other = engine.client.images.get("victim:1")
    stream = io.BytesIO(b"".join(other.save(named="victim:1")))
    trusted.tag("victim", "1")
    engine.client.images.remove(other.id)
    found: Members = {}
    with tarfile.open(fileobj=stream) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                found[member.name] = content.read()
    return found


def renamed(members: Members, before: str) -> Members:
    """Lists of names under other spellings of their names."""
    lists = {"manifest.json", "repositories"}
    return {f"{before}{name}" if name in lists else name: content for name, content in members.items()}


def in_small_letters(members: Members) -> Members:
    (entry,) = json.loads(members.pop("manifest.json"))
    members.pop("repositories")
    told = {"RepoTags": None} | entry | {"repotags": entry["RepoTags"], "RepoTags": None}
    return members | {"manifest.json": json.dumps([told]).encode()}


def linked(members: Members) -> Members:
    return {"list.json": members.pop("manifest.json")} | members | {"manifest.json": "list.json"}


def through_a_folder(members: Members) -> Members:
    """The list of names as it should be, and then another one through a link to the folder that it lies in."""
    content = members.pop("manifest.json")
    members.pop("repositories")
    (entry,) = json.loads(content)
    nameless = json.dumps([entry | {"RepoTags": None}]).encode()
    return members | {"manifest.json": nameless, "a": ".", "a/manifest.json": content}


def written(file: Path, members: Members) -> Path:
    with tarfile.open(file, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return file


@pytest.mark.parametrize(
    "trick",
    [lambda members: renamed(members, "./"), lambda members: renamed(members, "x/../"), in_small_letters],
    ids=["dot", "back", "small letters"],
)
def test_no_spelling_moves_a_trusted_name(
    engine: Engine, trusted: str, tmp_path: Path, trick: Callable[[Members], Members]
) -> None:
    file = written(tmp_path / "image.tar", trick(saved(engine, "1")))
    product = Product.connect()
    image = find_image(product, str(file))
    assert image.variables["VALUE"] == "1"
    assert image.loaded_as is not None
    assert engine.client.images.get("victim:1").id == trusted
    product.forget(image.loaded_as)
    engine.client.images.load(file.read_bytes())  # what the engine alone makes of it
    assert engine.client.images.get("victim:1").id == image.identity


@pytest.mark.parametrize("trick", [linked, through_a_folder])
def test_what_could_move_a_trusted_name_is_refused_and_nothing_of_it_stays(
    engine: Engine, trusted: str, tmp_path: Path, trick: Callable[[Members], Members]
) -> None:
    file = written(tmp_path / "image.tar", trick(saved(engine, "2")))
    before = {each.id for each in engine.client.images.list(all=True)}
    with pytest.raises(UsageError, match=r"manifest\.json (is no plain file|lies below a link)"):
        find_image(Product.connect(), str(file))
    assert engine.client.images.get("victim:1").id == trusted
    assert {each.id for each in engine.client.images.list(all=True)} == before
    engine.client.images.load(file.read_bytes())
    assert engine.client.images.get("victim:1").id != trusted


def loaded(engine: Engine) -> set[str]:
    """Names of the images that products have loaded from archives."""
    return {tag for each in engine.client.images.list(name=LOADED) for tag in each.tags}


def test_all_archives_of_a_product_that_was_killed_go_with_the_next_start(
    engine: Engine, trusted: str, tmp_path: Path, repository: Path
) -> None:
    files = [str(written(tmp_path / f"{value}.tar", saved(engine, value))) for value in ("3", "4")]
    before = {each.id for each in engine.client.images.list(all=True)}
    ours = loaded(engine)  # what this process has loaded and still uses
    code = (
        "import os, sys\n"
        "from validator.execute.docker_engine import Engine\n"
        "from validator.execute.image import find_image\n"
        "for file in sys.argv[1:]:\n"
        "    print(find_image(Engine.connect(), file).loaded_as, flush=True)\n"
        "os._exit(9)\n"
    )
    command = [sys.executable, "-c", code, *files]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    left = loaded(engine) - ours
    assert left == set(done.stdout.split())
    assert len(left) == 2
    Product.connect()
    assert loaded(engine) == ours
    assert {each.id for each in engine.client.images.list(all=True)} == before
