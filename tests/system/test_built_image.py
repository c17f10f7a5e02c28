"""The images of the workflows' job, built by a real engine: ``FROM scratch`` needs no registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.github.test_images import Scripts
from tests.system.engine import Engine
from validator.execute.docker_engine import Engine as Product
from validator.execute.image import find_image

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

DOCKERFILE = "FROM scratch\nADD containers/train/hello /hello\nENV MKL_CBWR=COMPATIBLE\n"


def test_what_the_job_builds_is_what_a_launch_loads(engine: Engine, tmp_path: Path) -> None:
    scripts = Scripts(tmp_path, "/usr/bin:/bin")
    folder = scripts.change / "containers" / "train"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "hello").write_text("hello\n")
    digest = scripts.build("containers/train/Dockerfile", DOCKER_HOST=engine.address, DOCKER_BUILDKIT="0")
    code, archive = scripts.take("containers/train/Dockerfile", digest)
    assert code == 0, archive
    (built,) = engine.client.images.list(name="candidate")
    engine.client.images.remove(built.id, force=True)
    image = find_image(Product.connect(), archive)
    assert (image.identity, image.variables["MKL_CBWR"]) == (built.id, "COMPATIBLE")


def test_a_dockerfile_that_fails_ends_the_job(engine: Engine, tmp_path: Path) -> None:
    scripts = Scripts(tmp_path, "/usr/bin:/bin")
    scripts.change.mkdir()
    (scripts.change / "Dockerfile").write_text("FROM scratch\nADD nothing /\n")
    variables = {"DOCKERFILES": "Dockerfile", "DOCKER_HOST": engine.address, "DOCKER_BUILDKIT": "0"}
    done = scripts.run("build-images", "change", "images", **variables)
    assert done.returncode != 0
    assert not (scripts.images / "images.lock").exists()
