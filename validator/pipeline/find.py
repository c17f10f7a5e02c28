"""Where pipelines are: by name in pipelines/, or any file."""

from __future__ import annotations

from pathlib import Path

from validator.errors import UsageError
from validator.pipeline.document import named, shown, suggestion
from validator.pipeline.model import Pipeline
from validator.pipeline.reading import read_pipeline

_FOLDER = "pipelines"
_SUFFIXES = (".yaml", ".yml")


def find_project(here: Path) -> Path:
    """The nearest folder around ``here`` that has pipelines, else the product's own checkout, else ``here``."""
    places = (here, *here.parents, Path(__file__).resolve().parents[2])
    return next((place for place in places if (place / _FOLDER).is_dir()), here)


def find_pipelines(root: Path) -> tuple[Path, ...]:
    """The files of ``root``/pipelines, by name; they are not read."""
    return tuple(sorted(path for path in (root / _FOLDER).glob("*.yaml") if path.is_file()))


def load_pipeline(name_or_file: str | Path, root: Path) -> Pipeline:
    """The pipeline of that name in ``root``/pipelines, or of that file where it has a folder or ends in .yaml or .yml.

    Raises ``UsageError`` with one sentence where there is none or it is not valid.
    """
    text = str(name_or_file)
    if "/" in text or text.endswith(_SUFFIXES) or isinstance(name_or_file, Path):
        file = Path(text)
        if not file.is_file():
            raise UsageError(
                f"{shown(text)} is no file; name a pipeline's YAML file, or a pipeline of {root / _FOLDER}."
            )
        return read_pipeline(file)
    names = [path.stem for path in find_pipelines(root)]
    if text not in names:
        accepted = f"accepted are {named(names)}" if names else f"there is none in {root / _FOLDER}"
        raise UsageError(
            f"There is no pipeline {shown(text)}{suggestion(text, names)}; {accepted}, or a YAML file's path."
        )
    return read_pipeline(root / _FOLDER / f"{text}.yaml")
