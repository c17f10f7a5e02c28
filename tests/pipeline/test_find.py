"""Pipelines by name and by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.samples import VALID, write
from validator.errors import UsageError
from validator.pipeline import find_pipelines, load_pipeline


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    write(folder, VALID)
    write(folder, VALID.replace("name: small", "name: other"), "other")
    (folder / "README.md").write_text("no pipeline")
    return tmp_path


def test_found_by_name(root: Path) -> None:
    assert [path.stem for path in find_pipelines(root)] == ["other", "small"]
    assert load_pipeline("other", root).name == "other"
    assert load_pipeline("other", root).file == root / "pipelines" / "other.yaml"


def test_found_by_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "pipelines")
    assert load_pipeline("other.yaml", Path("/nowhere")).name == "other"
    assert load_pipeline(root / "pipelines" / "small.yaml", root).name == "small"


def test_a_name_that_there_is_not(root: Path) -> None:
    with pytest.raises(UsageError, match=r"no pipeline 'smal' \(did you mean 'small'\?\); accepted are other or small"):
        load_pipeline("smal", root)
    with pytest.raises(UsageError, match="there is none in"):
        load_pipeline("small", root / "pipelines")
    with pytest.raises(UsageError, match=r"'missing\.yaml' is no file"):
        load_pipeline("missing.yaml", root)
