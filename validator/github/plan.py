"""Which pipelines a change calls for. Everything is read from git as data; nothing of the change runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from validator.errors import UsageError
from validator.golden.files import RECORD
from validator.golden.history import Repository
from validator.pipeline import Pipeline, find_pipelines, read_pipeline
from validator.pipeline.triggers import matches
from validator.report.text import counted, printable

SCHEMA = "validator/plan"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Called:
    """One pipeline that the change calls for, why, the labels of the runners that have its hardware, and the Dockerfile
    of the image that it is launched in (empty: none is built).
    """

    pipeline: str
    reason: str
    runner: tuple[str, ...]
    dockerfile: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a change from ``base`` to ``head`` (full commits) calls for. ``findings`` are sentences for a person."""

    base: str
    head: str
    called: tuple[Called, ...]
    findings: tuple[str, ...]
    pipelines: int

    @property
    def sentence(self) -> str:
        """``Nothing is called for: …``, or how many pipelines are."""
        if not self.called:
            return "Nothing is called for: no changed path is one that a pipeline looks at."
        return f"{len(self.called)} of {counted(self.pipelines, 'pipeline')} called for."

    def lines(self) -> list[str]:
        """For the terminal."""
        called = [f"  {each.pipeline}: {each.reason} (runner {', '.join(each.runner)})" for each in self.called]
        findings = [f"finding: {finding}" for finding in self.findings]
        return [printable(line) for line in (self.sentence, *called, *findings)]

    def document(self) -> dict[str, object]:
        """As JSON; ``matrix`` is what a workflow's strategy takes."""
        include = [
            {
                "pipeline": each.pipeline, "runner": list(each.runner), "reason": printable(each.reason),
                "dockerfile": each.dockerfile,
            }
            for each in self.called
        ]  # fmt: skip
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "base": self.base,
            "head": self.head,
            "called": bool(self.called),
            "matrix": {"include": include},
            "findings": [printable(finding) for finding in self.findings],
        }

    def outputs(self) -> str:
        """Lines for the file that ``GITHUB_OUTPUT`` names; every value is one line."""
        document = self.document()
        values = {name: document[name] for name in ("base", "head", "called", "matrix", "findings")}
        values["dockerfiles"] = " ".join(sorted({each.dockerfile for each in self.called if each.dockerfile}))
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
        return "".join(f"{name}={text}\n" for name, text in texts.items())


#: Choices of pipelines beside their names.
CALLED, ALL = "called", "all"


def make_plan(root: Path, base: str, head: str, image: str | None = None, chosen: str = CALLED) -> Plan:
    """What the change from ``base`` to ``head`` calls for in the project at ``root``.

    Counted are the paths that changed since the two parted. With ``image`` (a container image, with its digest) also
    the pipelines that look at an image of that name. ``chosen`` asks for others than those that are called for: names
    separated by commas, or ``all``. Raises ``UsageError`` where a revision or a name is unknown.
    """
    repository = Repository.around(root)
    before, after = repository.resolve(base), repository.resolve(head)
    prefix = "" if root.resolve() == repository.top.resolve() else _relative(root, repository.top)
    changed = {
        path.removeprefix(prefix): status
        for path, status in repository.changed(repository.merge_base(before, after), after).items()
        if path.startswith(prefix)
    }
    with tempfile.TemporaryDirectory() as temporary:
        old, _ = _pipelines(repository, before, root, Path(temporary) / "base")
        new, findings = _pipelines(repository, after, root, Path(temporary) / "head")
    findings += [f"The change removes the pipeline {name}." for name in old if name not in new]
    findings += _removed_goldens(changed)
    labels = {pipeline.policy.triggers.runner for pipeline in old.values() if pipeline is not None}
    asked = _asked(chosen, new)
    called = []
    for name, pipeline in new.items():
        trusted = old.get(name) or pipeline
        if pipeline is None or trusted is None:
            continue  # said among the findings
        reason = _reason(name, old.get(name), pipeline, changed, image) if asked is None else asked.get(name)
        if reason is None:
            continue
        runner = trusted.policy.triggers.runner
        if old.get(name) is None and labels and runner not in labels:
            known = "; ".join(", ".join(each) for each in sorted(labels))
            findings.append(
                f"The new pipeline {name} asks for the runner {', '.join(runner)}, and the base's use {known}; "
                "let an owner of pipelines/ add it first."
            )
            continue
        called.append(Called(name, reason, runner, trusted.policy.triggers.dockerfile))
    return Plan(before, after, tuple(called), tuple(findings), len(new))


def _asked(chosen: str, pipelines: Mapping[str, Pipeline | None]) -> dict[str, str] | None:
    """The pipelines that were asked for by name, with the reason; ``None`` where the change decides."""
    if chosen == CALLED:
        return None
    names = list(pipelines) if chosen == ALL else [name.strip() for name in chosen.split(",") if name.strip()]
    unknown = [name for name in names if name not in pipelines]
    if unknown or not names:
        found = repr(unknown[0]) if unknown else "no name"
        raise UsageError(
            f"--pipelines has {found}; accepted are {ALL}, {CALLED} or names out of {', '.join(pipelines)}."
        )
    return dict.fromkeys(names, "asked for")


def _reason(
    name: str, old: Pipeline | None, new: Pipeline, changed: Mapping[str, str], image: str | None
) -> str | None:
    """Why the pipeline is called for; ``None`` where it is not."""
    if f"pipelines/{name}.yaml" in changed:
        return "the pipeline is new" if old is None else "the pipeline changed"
    golden = next((path for path in changed if matches(f"golden/{name}/**", path)), None)
    if golden is not None:
        return f"its golden changed ({golden})"
    for triggers in (pipeline.policy.triggers for pipeline in (old, new) if pipeline is not None):
        path = triggers.first_path(changed)
        if path is not None:
            return f"{path} changed"
    looks_at = (old or new).policy.triggers
    if image is not None and looks_at.calls_for_image(image):
        return f"the image {image} is new"
    return None


def _pipelines(
    repository: Repository, revision: str, root: Path, folder: Path
) -> tuple[dict[str, Pipeline | None], list[str]]:
    """Pipelines of a revision by name, ``None`` for one that is not valid, and a sentence for each of those."""
    repository.extract(revision, root / "pipelines", folder / "pipelines")
    found: dict[str, Pipeline | None] = {}
    findings = []
    for file in find_pipelines(folder):
        try:
            found[file.stem] = read_pipeline(file)
        except UsageError as error:
            found[file.stem] = None
            findings.append(str(error).replace(f"{folder}/", ""))
    return found, findings


def _removed_goldens(changed: Mapping[str, str]) -> list[str]:
    gone = [path for path, status in changed.items() if status == "D" and matches(f"golden/*/*/{RECORD}", path)]
    return [f"The change removes the golden in {path.rpartition('/')[0]}." for path in sorted(gone)]


def _relative(root: Path, top: Path) -> str:
    return root.resolve().relative_to(top.resolve()).as_posix() + "/"
