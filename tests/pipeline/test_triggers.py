from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.samples import VALID, write
from validator.errors import UsageError
from validator.pipeline import Triggers, read_pipeline
from validator.pipeline.triggers import image_name, matches


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("constraints*.txt", "constraints-gpu.txt", True),
        ("constraints*.txt", "docs/constraints.txt", False),
        ("*.lock", "a/b.lock", False),
        ("**/*.lock", "a/b/c.lock", True),
        ("**/*.lock", "c.lock", True),
        ("containers/**", "containers/gpu/Dockerfile", True),
        ("containers/**", "containers", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("[ab]", "a", False),  # nothing but * and ? is special
    ],
)
def test_patterns(pattern: str, path: str, found: bool) -> None:
    assert matches(pattern, path) is found


@pytest.mark.parametrize(
    "image",
    [
        "registry.example:5000/team/train",
        "registry.example:5000/team/train:26.11",
        f"registry.example:5000/team/train@sha256:{'0' * 64}",
        f"registry.example:5000/team/train:26.11@sha256:{'0' * 64}",
    ],
)
def test_an_images_name_has_neither_tag_nor_digest(image: str) -> None:
    assert image_name(image) == "registry.example:5000/team/train"
    assert Triggers(images=("registry.example:5000/team/*",)).calls_for_image(image)
    assert not Triggers().calls_for_image(image)


def test_a_pipelines_triggers_are_read(tmp_path: Path) -> None:
    text = VALID + "  triggers: {paths: [lock.txt, 'src/**'], images: [a/b], runner: [self-hosted, h200]}\n"
    found = read_pipeline(write(tmp_path, text)).policy.triggers
    assert found == Triggers(("lock.txt", "src/**"), ("a/b",), ("self-hosted", "h200"))
    assert found.first_path(["docs/x", "src/a/b.py"]) == "src/a/b.py"
    assert found.first_path(["docs/x"]) is None


def test_without_triggers_the_defaults_hold(tmp_path: Path) -> None:
    assert read_pipeline(write(tmp_path, VALID)).policy.triggers == Triggers()


@pytest.mark.parametrize(
    ("triggers", "sentence"),
    [
        ("{dockerfile: ../Dockerfile}", "policy.triggers.dockerfile is '../Dockerfile'; accepted is a path within"),
        ("{dockerfile: /etc/passwd}", "policy.triggers.dockerfile is '/etc/passwd'; accepted is a path within"),
        ("{runner: []}", "policy.triggers.runner is empty; accepted is at least one label"),
        ("{runner: ['a b']}", "is 'a b'; accepted is a runner's label"),
        ("{runners: [a]}", "did you mean 'runner'?"),
        ("{paths: constraints.txt}", "accepted is a list"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, triggers: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_pipeline(write(tmp_path, VALID + f"  triggers: {triggers}\n"))
    assert sentence in str(caught.value)
