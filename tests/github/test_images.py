"""From a Dockerfile to the archive that a launch gets, with a stand-in for Docker."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.github.team import ROOT

#: Notes its words; ``save`` writes an archive that says what was built.
DOCKER = """#!/bin/bash
echo "$*" >>"{folder}/asked"
case $1 in
build) for last; do :; done; cat "$4" >"{folder}/built" ;;
save) cp "{folder}/built" "$3" ;;
image) echo sha256:1234 ;;
esac
"""


@dataclass
class Scripts:
    """The scripts of the jobs, in a folder with a change."""

    folder: Path
    path: str

    @property
    def change(self) -> Path:
        return self.folder / "change"

    @property
    def images(self) -> Path:
        return self.folder / "images"

    def run(self, script: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": self.path, "HOME": str(self.folder), **variables}
        command = [str(ROOT / "scripts" / "github" / script), *words]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def build(self, dockerfiles: str, **variables: str) -> str:
        """Build; gives the digest."""
        output = self.folder / "output"
        done = self.run(
            "build-images", "change", "images", DOCKERFILES=dockerfiles, GITHUB_OUTPUT=str(output), **variables
        )
        assert done.returncode == 0, done.stderr
        return output.read_text().removeprefix("digest=").strip()

    def take(self, dockerfile: str, digest: str) -> tuple[int, str]:
        done = self.run("take-image", "images", dockerfile, DIGEST=digest)
        return done.returncode, (done.stdout if done.returncode == 0 else done.stderr).strip()


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    for name in ("cpu", "cuda"):
        (tmp_path / "change" / "containers" / name).mkdir(parents=True)
        (tmp_path / "change" / "containers" / name / "Dockerfile").write_text(f"FROM scratch\nLABEL is={name}\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "docker").write_text(DOCKER.format(folder=programs))
    (programs / "docker").chmod(0o755)
    return Scripts(tmp_path, f"{programs}:/usr/bin:/bin")


def test_each_dockerfile_becomes_an_archive_that_its_pipeline_takes(scripts: Scripts) -> None:
    digest = scripts.build("containers/cpu/Dockerfile containers/cuda/Dockerfile")
    assert len(digest) == 64
    for name in ("cpu", "cuda"):
        archive = scripts.images / f"containers_{name}_Dockerfile.tar"
        assert scripts.take(f"containers/{name}/Dockerfile", digest) == (0, str(archive))
        assert f"LABEL is={name}" in archive.read_text()
    asked = (scripts.folder / "programs" / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["build", "save", "image"] * 2
    assert asked[0].endswith(str(scripts.change))  # the change is the context


def test_what_is_not_a_file_of_the_change_is_not_built(scripts: Scripts, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("FROM scratch\n")
    (scripts.change / "linked").symlink_to(tmp_path / "elsewhere")
    for name in ("containers/none/Dockerfile", "linked"):
        done = scripts.run("build-images", "change", "images", DOCKERFILES=name)
        assert done.returncode == 1
        assert f"the change has no file {name} to build an image from" in done.stderr
    assert not (scripts.folder / "programs" / "asked").exists()


def test_an_image_that_was_exchanged_is_refused(scripts: Scripts) -> None:
    digest = scripts.build("containers/cpu/Dockerfile")
    assert "and the job that built them made" in scripts.take("containers/cpu/Dockerfile", "0" * 64)[1]
    assert "no image was built from containers/cuda/Dockerfile" in scripts.take("containers/cuda/Dockerfile", digest)[1]
    archive = scripts.images / "containers_cpu_Dockerfile.tar"
    content = archive.read_bytes()
    archive.write_bytes(content + b" ")
    assert "is not the one that was built" in scripts.take("containers/cpu/Dockerfile", digest)[1]
    archive.unlink()
    archive.with_name("other").write_bytes(content)
    archive.symlink_to(archive.with_name("other"))
    assert "is not the one that was built" in scripts.take("containers/cpu/Dockerfile", digest)[1]


def test_a_launch_gets_the_archive_as_its_image(scripts: Scripts, tmp_path: Path) -> None:
    python = tmp_path / "environment" / "product" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    done = scripts.run("launch", "environment", "out", "check", "tiny", IMAGE="/images/a.tar")
    assert done.stdout == "-m validator check tiny --image /images/a.tar --out out\n"
