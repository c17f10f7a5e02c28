"""What a product that is gone left in an engine, and what is removed of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from validator.errors import LaunchError
from validator.execute import image as images
from validator.execute.docker_engine import LOADED, Engine, tag_for
from validator.execute.owner import Owner

Tags = dict[str, list[str]]


class Images:
    """An engine's images: tags by ID. A tag that goes takes nothing else along."""

    def __init__(self, tags: Tags) -> None:
        self.tags = tags

    def list(self, name: str) -> Sequence[SimpleNamespace]:
        found = {each: tags for each, tags in self.tags.items() if any(tag.startswith(f"{name}:") for tag in tags)}
        return [SimpleNamespace(id=each, tags=list(tags)) for each, tags in found.items()]

    def remove(self, tag: str) -> None:
        for tags in self.tags.values():
            if tag in tags:
                tags.remove(tag)


def engine_with(tags: Tags) -> Engine:
    client: Any = SimpleNamespace(images=Images(tags), containers=SimpleNamespace(list=lambda **_: []))
    return Engine(client, "unix:///nowhere")


def test_every_archive_of_a_product_that_is_gone_goes_and_no_other() -> None:
    here = Owner.current()
    gone = dataclasses.replace(here, started=1)
    tags = {
        "sha256:a": [tag_for(gone, 1), tag_for(here, 1), "company/base:1"],
        "sha256:b": [tag_for(gone, 2), tag_for(gone, 3)],
        "sha256:c": [tag_for(here, 2), f"{LOADED}:somebody"],
    }
    removed = engine_with(tags).sweep()
    assert sorted(removed) == [tag_for(gone, number) for number in (1, 2, 3)]
    assert tags == {
        "sha256:a": [tag_for(here, 1), "company/base:1"],
        "sha256:b": [],
        "sha256:c": [tag_for(here, 2), f"{LOADED}:somebody"],
    }


def test_an_archive_that_turns_out_to_be_no_candidate_goes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = tag_for(Owner.current(), 1)
    tags = {"sha256:a": [tag]}
    monkeypatch.setattr(images, "load_archive", lambda *_: ("sha256:a", tag))
    (tmp_path / "image.tar").touch()

    def refuse(*_: object) -> None:
        raise LaunchError("The engine went away.")

    monkeypatch.setattr(images, "_look_at", refuse)
    with pytest.raises(LaunchError, match="went away"):
        images.find_image(engine_with(tags), str(tmp_path / "image.tar"))
    assert tags == {"sha256:a": []}
