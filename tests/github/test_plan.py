"""What a change calls for, through the command line and in a real git repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.project import PIPELINE, Project
from tests.repository import Repo

OTHER = PIPELINE.replace("name: tiny", "name: other") + (
    "  triggers: {paths: ['kernels/**'], images: [registry.example/team/train], runner: [self-hosted, h200]}\n"
)


@pytest.fixture
def repo(project: Project) -> Repo:
    repo = Repo.create(project.folder)
    repo.write(".gitignore", "plan.json\noutputs\n")
    repo.write("pipelines/other.yaml", OTHER)
    repo.write("golden/tiny/cpu/golden.json", "{}")
    repo.commit("two pipelines")
    repo.git("checkout", "-q", "-b", "change")
    return repo


def plan(project: Project, *words: str) -> dict[str, object]:
    ran = project.run("plan", "--base", "main", "--json", "plan.json", *words)
    assert ran.code == 0, ran.err
    content: dict[str, object] = json.loads(Path("plan.json").read_text())
    content["names"] = [each["pipeline"] for each in content["matrix"]["include"]]  # type: ignore[index]
    content["out"] = ran.out
    return content


def test_nothing_called_for_is_said_so(project: Project, repo: Repo) -> None:
    repo.write("docs/page.md", "words")
    repo.commit("docs")
    found = plan(project)
    assert (found["called"], found["names"], found["findings"]) == (False, [], [])
    assert found["out"] == "Nothing is called for: no changed path is one that a pipeline looks at.\n"


def test_a_path_calls_for_the_pipelines_that_look_at_it(project: Project, repo: Repo) -> None:
    repo.write("kernels/deep/scan.cu", "")
    repo.commit("a kernel")
    found = plan(project)
    assert found["matrix"] == {
        "include": [
            {
                "pipeline": "other", "runner": ["self-hosted", "h200"], "reason": "kernels/deep/scan.cu changed",
                "dockerfile": "",
            }
        ]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("pipelines/other.yaml", OTHER.replace("seed: 1234", "seed: 1"), "other"),
        ("golden/tiny/cpu/golden.json", "{ }", "tiny"),
        ("golden/tiny/cuda/golden.json", "{}", "tiny"),
    ],
)
def test_a_changed_pipeline_or_golden_calls_for_that_pipeline(
    project: Project, repo: Repo, path: str, text: str, name: str
) -> None:
    repo.write(path, text)
    repo.commit("a change")
    assert plan(project)["names"] == [name]


def test_patterns_of_the_base_count_as_well_as_the_changes(project: Project, repo: Repo) -> None:
    repo.write("pipelines/tiny.yaml", PIPELINE + "  triggers: {paths: ['src/**']}\n")
    repo.write("constraints.txt", "torch==2.15.0\n")
    repo.commit("looks away, and bumps")
    assert plan(project)["names"] == ["tiny"]
    repo.git("checkout", "-q", "-b", "second", "main")
    repo.write("pipelines/other.yaml", OTHER.replace("kernels/**", "new/**"))
    repo.write("kernels/x", "")
    repo.commit("looks elsewhere")
    assert plan(project)["names"] == ["other"]


def test_runner_labels_come_from_the_base(project: Project, repo: Repo) -> None:
    repo.write("pipelines/other.yaml", OTHER.replace("h200", "deploy"))
    repo.write("pipelines/third.yaml", OTHER.replace("name: other", "name: third").replace("h200", "deploy"))
    repo.write("pipelines/fourth.yaml", OTHER.replace("name: other", "name: fourth"))
    repo.commit("wants another machine")
    found = plan(project)
    assert found["names"] == ["fourth", "other"]
    assert "deploy" not in json.dumps(found["matrix"])
    assert "The new pipeline third asks for the runner self-hosted, deploy" in str(found["findings"])


def test_deletions_are_findings(project: Project, repo: Repo) -> None:
    repo.git("rm", "-q", "pipelines/other.yaml", "golden/tiny/cpu/golden.json")
    repo.commit("removes")
    assert plan(project)["findings"] == [
        "The change removes the pipeline other.", "The change removes the golden in golden/tiny/cpu.",
    ]  # fmt: skip


def test_a_pipeline_that_is_not_valid_is_a_finding(project: Project, repo: Repo) -> None:
    repo.write("pipelines/tiny.yaml", PIPELINE.replace("seed: 1234", "seed: none"))
    repo.commit("breaks it")
    found = str(plan(project)["findings"])
    assert "pipelines/tiny.yaml:8: computation.seed is 'none'" in found


def test_only_what_the_change_itself_did_counts(project: Project, repo: Repo) -> None:
    repo.write("docs.md", "words")
    repo.commit("docs")
    repo.git("checkout", "-q", "main")
    repo.write("constraints.txt", "torch==2.15.0\n")
    repo.commit("main goes on")
    repo.git("checkout", "-q", "change")
    assert plan(project)["called"] is False


def test_an_image_calls_for_its_pipelines(project: Project, repo: Repo) -> None:
    found = plan(project, "--head", "main", "--image", f"registry.example/team/train:26.11@sha256:{'a' * 64}")
    assert found["names"] == ["other"]
    assert plan(project, "--head", "main", "--image", f"registry.example/else@sha256:{'a' * 64}")["names"] == []


def test_pipelines_can_be_asked_for(project: Project, repo: Repo) -> None:
    assert plan(project, "--pipelines", "all")["names"] == ["other", "tiny"]
    assert plan(project, "--pipelines", "tiny")["names"] == ["tiny"]
    ran = project.run("plan", "--base", "main", "--pipelines", "tinny")
    assert (ran.code, "--pipelines has 'tinny'; accepted are all, called or names out of other, tiny" in ran.err) == (
        2, True,
    )  # fmt: skip


def test_outputs_for_a_workflow_are_one_line_each(project: Project, repo: Repo) -> None:
    repo.write("kernels/a\nmatrix=evil", "")
    repo.commit("a name that tries")
    project.run("plan", "--base", "main", "--github-output", "outputs")
    lines = Path("outputs").read_text().splitlines()
    assert [line.partition("=")[0] for line in lines] == [
        "base", "head", "called", "matrix", "findings", "dockerfiles",
    ]  # fmt: skip
    assert "\\\\x0amatrix=evil" in lines[3]


def test_the_dockerfile_of_the_base_goes_with_its_pipeline(project: Project, repo: Repo) -> None:
    """A change chooses what is in the image, and not which file it is built from."""
    for branch, name in (("main", "containers/train/Dockerfile"), ("change", "mine/Dockerfile")):
        repo.git("checkout", "-q", branch)
        text = project.pipeline.read_text().partition("  triggers:")[0]
        project.pipeline.write_text(f"{text}  triggers: {{dockerfile: {name}}}\n")
        repo.commit("an image")
    found = plan(project)
    assert found["names"] == ["tiny"]
    assert found["matrix"]["include"][0]["dockerfile"] == "containers/train/Dockerfile"  # type: ignore[index]
    project.run("plan", "--base", "main", "--pipelines", "all", "--github-output", "outputs")
    assert Path("outputs").read_text().splitlines()[-1] == "dockerfiles=containers/train/Dockerfile"


@pytest.mark.parametrize("words", [("--base", "nowhere"), ("--base", "main", "--head", "--output=x")])
def test_an_unknown_revision_is_one_sentence(project: Project, repo: Repo, words: tuple[str, ...]) -> None:
    ran = project.run("plan", *words) if words[0] == "--base" and len(words) == 2 else project.run(
        "plan", "--base", "main", f"--head={words[3]}"
    )  # fmt: skip
    assert ran.code == 2
    assert "names no commit" in ran.err
