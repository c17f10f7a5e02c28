"""A check inside an image: the same bits, what two images differ in, and who changed them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.project import Project, Ran
from tests.system.engine import Engine
from tests.system.in_image import changed_bits, check, record

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def package(folder: Path, version: str) -> bytes:
    """A real Debian package of a library that computes."""
    root = folder / f"mathlib-{version}"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        f"Package: mathlib\nVersion: {version}\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: sums\n"
    )
    (root / "usr/lib/mathlib").mkdir(parents=True)
    (root / "usr/lib/mathlib/version").write_text(version)
    made = folder / f"mathlib-{version}.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(root), str(made)], check=True, capture_output=True)
    return made.read_bytes()


def with_variable(engine: Engine, base: str, value: str) -> str:
    engine.build(f"variable:{value}", f"FROM {base}\nENV MKL_CBWR={value}\n")
    return f"variable:{value}"


def with_package(engine: Engine, base: str, folder: Path, version: str) -> str:
    files = {"mathlib.deb": package(folder, version)}
    engine.build(f"package:{version}", f"FROM {base}\nCOPY mathlib.deb /\nRUN dpkg -i /mathlib.deb\n", files)
    return f"package:{version}"


def test_the_golden_from_outside_holds_inside(project: Project, engine: Engine, debian_image: str) -> None:
    assert project.record_golden().code == 0
    ran = check(project, debian_image)
    assert (ran.code, ran.verdict, ran.outcomes) == (0, "pass", ("holds", "holds", "holds", "holds"))
    facts = ran.report["environment"]["facts"]["image"]
    assert facts["id"] == ["observed", engine.client.images.get(debian_image).id]
    assert facts["system"] == ["observed", "Debian GNU/Linux 12 (bookworm)"]
    assert "package python3.11-minimal" in facts
    listed = {row["name"] for row in ran.report["environment_difference"] if row["kind"] == "image"}
    assert listed == {"id", "system"}  # the golden's launch ran in no image: not every package is a change


def test_a_variable_of_the_image_that_changes_bits_is_named(
    project: Project, engine: Engine, debian_image: str
) -> None:
    before, after = (with_variable(engine, debian_image, value) for value in ("COMPATIBLE", "AVX2"))
    assert record(project, before).code == 0
    assert check(project, before).verdict == "pass"
    ran = check(project, after, "--base-image", before)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert changed_bits(ran) == [
        ("variables", "MKL_CBWR", "COMPATIBLE", "AVX2"),
        ("image", "variable MKL_CBWR", "COMPATIBLE", "AVX2"),
    ]
    assert ran.report["sentence"].startswith("The image did it: the image variable:COMPATIBLE (")
    gate = ran.gate("attribution")
    assert gate["outcome"] == "holds"
    assert "variables MKL_CBWR: COMPATIBLE in the base, AVX2 here" in gate["notes"]


def test_a_package_of_the_image_that_changes_bits_is_named(
    project: Project, engine: Engine, debian_image: str, tmp_path: Path
) -> None:
    before, after = (with_package(engine, debian_image, tmp_path, version) for version in ("1.0", "2.0"))
    assert record(project, before).code == 0
    ran = check(project, after, "--base-image", before)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert changed_bits(ran) == [("image", "package mathlib", "1.0", "2.0")]
    others = [row["name"] for row in ran.report["environment_difference"] if not row["can_change_bits"]]
    assert others == ["id"]
    assert "The image did it" in ran.report["sentence"]


def test_where_both_images_give_other_bits_the_host_did_it(project: Project, engine: Engine, debian_image: str) -> None:
    engine.build("label:1", f"FROM {debian_image}\nLABEL release=1\n")
    assert record(project, debian_image).code == 0
    project.double.misbehave(every={"diverge": {"step": 2}})
    ran = check(project, "label:1", "--base-image", debian_image)
    assert (ran.code, ran.verdict) == (3, "host_changed")
    assert ran.report["sentence"].startswith("The host did it: the image debian:base (")


def test_where_host_and_image_changed_both_are_named(project: Project, engine: Engine, debian_image: str) -> None:
    other = with_variable(engine, debian_image, "SSE4_2")
    assert record(project, debian_image).code == 0
    project.double.misbehave(every={"diverge": {"step": 2}})
    ran = check(project, other, "--base-image", debian_image)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert ran.report["sentence"].startswith("The host changed, and the image too: ")
    assert ran.gate("attribution")["divergence"]["moment"] == "setup:0"


def test_an_archive_is_loaded_under_no_name_of_its_own(
    project: Project, engine: Engine, debian_image: str, tmp_path: Path
) -> None:
    trusted = engine.client.images.get(debian_image).id
    engine.build("other:1", f"FROM {debian_image}\nENV MKL_CBWR=AVX\n")
    engine.client.images.get("other:1").tag("victim", "1")
    engine.client.images.remove("other:1")
    archive = tmp_path / "image.tar"
    with archive.open("wb") as file:
        for piece in engine.client.images.get("victim:1").save(named=True):
            file.write(piece)
    engine.client.images.remove("victim:1")
    engine.client.images.get(debian_image).tag("victim", "1")
    assert project.record_golden().code == 0
    ran = check(project, str(archive))
    assert ran.verdict == "changed"
    assert engine.client.images.get("victim:1").id == trusted
    engine.client.images.remove("victim:1")


@pytest.mark.parametrize("content", [b"", b"no archive", b"\0" * 10240])
def test_what_is_no_archive_is_one_sentence(project: Project, engine: Engine, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "image.tar"
    file.write_bytes(content)
    ran = project.run("check", "tiny", "--image", str(file))
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "--image" in ran.err


def test_all_that_an_image_lacks_is_one_sentence(project: Project, engine: Engine, debian_image: str) -> None:
    lacking = "Python 3.12 or newer, torch 2.13 or newer, megatron-core 0.19 or newer, einops 0.8 or newer"
    ran = project.run("doctor", "--image", debian_image)
    assert ran.code == 3
    assert lacking in ran.out
    assert "python3 is 3.11" in ran.out
    ran = project.run("check", "tiny", "--image", debian_image)
    assert ran.code == 3
    assert lacking in ran.err
    assert ran.err.count("\n") == 1
    ran = project.run("check", "tiny", "--image", debian_image, "--python", "/opt/python")
    assert "there is no /opt/python in it" in ran.err


def test_options_that_do_not_fit_are_refused(project: Project, engine: Engine, debian_image: str) -> None:
    for options in (["--bind", "/tmp"], ["--base-image", "x:1"], ["--image", "x:1", "--slurm"],
                    ["--image", debian_image, "--bind", "/nowhere"], ["--image", "no such"]):  # fmt: skip
        ran = project.run("check", "tiny", *options)
        assert (ran.code, ran.err.count("\n")) == (2, 1), options


def test_a_variable_of_the_image_that_rules_out_determinism_is_refused(
    project: Project, engine: Engine, debian_image: str
) -> None:
    engine.build("tree:1", f"FROM {debian_image}\nENV NCCL_ALGO=Tree\n")
    ran = check(project, "tree:1")
    assert ran.code == 2
    assert "NCCL_ALGO='Tree' rules out determinism" in ran.err
    assert "change it in the image tree:1" in ran.err


@pytest.mark.timeout(900)
def test_two_images_with_another_variable_train_other_bits(
    engine: Engine, debian_image: str, repository: Path, tmp_path: Path
) -> None:
    """Real training: PyTorch's kernels are chosen by a variable of the image, which the pipeline leaves open."""
    import sys

    from tests.system.engine import ENVIRONMENT
    from validator.cli import main

    text = (repository / "pipelines" / "nemotron-cpu.yaml").read_text()
    for old, new in (
        ("    ATEN_CPU_CAPABILITY: default\n", ""), ("steps: 10", "steps: 4"), ("resume: required}", "resume: off}"),
        (text[text.index("  resume:\n") : text.index("  limits:")], ""), (text[text.index("  waivers:") :], ""),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "pipelines").mkdir()
    pipeline = tmp_path / "pipelines" / "nemotron-cpu.yaml"
    pipeline.write_text(text)
    images = []
    for value in ("default", "avx2"):
        images.append(f"kernels:{value}")
        engine.build(images[-1], f"FROM {debian_image}\nENV ATEN_CPU_CAPABILITY={value}\n")
    before, after = images
    words = [word for folder in ENVIRONMENT for word in ("--bind", str(folder))]
    options = ["--python", sys.executable, *words, "--golden", str(tmp_path / "golden")]
    names = ("--reason", "first recording", "--approver", "Ann", "--out", str(tmp_path / "recording"))
    assert main(["golden", "record", str(pipeline), "--image", before, *options, *names]) == 0
    report = tmp_path / "report.json"
    images_of_the_check = ["--image", after, "--base-image", before]
    out = ["--out", str(tmp_path / "run"), "--json", str(report)]
    assert main(["check", str(pipeline), *images_of_the_check, *options, *out]) == 1
    told = json.loads(report.read_text())
    assert told["verdict"] == "changed", told["sentence"]
    ran = Ran(1, "", "", told)
    assert {row[:2] for row in changed_bits(ran)} == {
        ("variables", "ATEN_CPU_CAPABILITY"), ("image", "variable ATEN_CPU_CAPABILITY"), ("torch", "cpu_capability"),
    }  # fmt: skip
    assert told["sentence"].startswith(f"The image did it: the image {before} (")
    assert told["divergence"]["group"] in {"parameters", "main_parameters", "gradients", "metrics", "buffers"}
    shutil.rmtree(tmp_path / "run")


def real_training(repository: Path, image: str) -> list[str]:
    """What every command on nemotron-cpu in an image is given: the project's environment is bound in."""
    import sys

    from tests.system.engine import ENVIRONMENT

    words = [word for folder in ENVIRONMENT for word in ("--bind", str(folder))]
    pipeline, golden = repository / "pipelines" / "nemotron-cpu.yaml", repository / "golden"
    return [str(pipeline), "--image", image, "--python", sys.executable, *words, "--golden", str(golden)]


@pytest.mark.timeout(400)
def test_real_training_in_an_image_has_the_shipped_goldens_bits(
    engine: Engine, debian_image: str, repository: Path, tmp_path: Path
) -> None:
    """The whole check of nemotron-cpu, against the golden that was recorded on no container at all."""
    from validator.cli import main

    report = tmp_path / "report.json"
    code = main(
        ["check", *real_training(repository, debian_image), "--out", str(tmp_path / "run"), "--json", str(report)]
    )
    told = json.loads(report.read_text())
    assert (code, told["verdict"]) == (0, "pass"), told["sentence"]
    assert told["environment"]["facts"]["image"]["system"][1].startswith("Debian")
    shutil.rmtree(tmp_path / "run")


@pytest.mark.timeout(400)
def test_a_fault_inside_an_image_is_caught_by_what_comes_out_of_it(
    engine: Engine, debian_image: str, repository: Path, tmp_path: Path
) -> None:
    """Real training: the launch's account of itself and what the fault says that it touched come out as well."""
    from validator.cli import main

    file = tmp_path / "selftest.json"
    what = ["--fault", "negative-zero", "--quick", "--no-localise", "--json", str(file)]
    code = main(["selftest", *real_training(repository, debian_image), *what, "--out", str(tmp_path / "run")])
    told = json.loads(file.read_text())
    assert (code, told["clean"]["holds"]) == (0, True), told["clean"]["sentence"]
    (fault,) = told["faults"]
    assert fault["outcome"] == "caught_and_named", fault
    assert fault["found"].startswith("step:3 ")
    shutil.rmtree(tmp_path / "run")
