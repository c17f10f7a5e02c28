"""``validator bisect`` as a person runs it, on small packages and the launch double."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.diagnose.bisect.double import NUMPY, real_numpy, torch_double
from tests.diagnose.bisect.wheels import make_environment, make_wheel, unpack
from tests.project import Project, Ran
from validator.check.place import Place
from validator.execute.local import LocalExecutor
from validator.trajectory.reader import Trajectory

LETTERS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta")

#: Both sets of nine packages: version 1.0 of each letter, and 2.0.
BEFORE, AFTER = (dict.fromkeys(LETTERS, version) for version in ("1.0", "2.0"))


@dataclass(frozen=True)
class Bench:
    """A project, and wheels to bisect between."""

    project: Project
    cache: Path

    @property
    def wheels(self) -> Path:
        return self.project.folder / "wheels"

    def lock(self, name: str, versions: Mapping[str, str]) -> str:
        file = self.project.folder / name
        file.write_text(
            "".join(f"{each}=={version}\n" for each, version in versions.items()) + f"{NUMPY}\ntorch==0.0.1\n"
        )
        return str(file)

    def bisect(self, rule: str, *words: str, before=BEFORE, after=AFTER, localise=False) -> tuple[Ran, dict[str, Any]]:
        """Bisect two locks, where the double's faults follow ``rule``."""
        make_wheel(self.wheels, "torch", "0.0.1", torch_double(rule))
        for versions in (before, after):
            for name, version in versions.items():
                make_wheel(self.wheels, name, version)
        links = ("--find-links", str(self.wheels), "--offline", *(() if localise else ("--no-localise",)))
        return self.run(self.lock("before.txt", before), self.lock("after.txt", after), *links, *words)

    def run(self, before: str, after: str, *words: str) -> tuple[Ran, dict[str, Any]]:
        file = self.project.folder / "bisect.json"
        ran = self.project.run("bisect", "tiny", before, after, "--json", str(file), *words)
        answer = json.loads(file.read_text()) if file.exists() else {}
        assert answer.get("exit_code", ran.code) == ran.code
        return ran, answer


@pytest.fixture
def bench(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Bench(project, tmp_path / "cache")


def names(changes: list[dict[str, Any]]) -> set[str]:
    return {str(change["name"]) for change in changes}


def test_one_package_is_found_in_a_logarithmic_number_of_launches(bench: Bench) -> None:
    ran, answer = bench.bisect("{'diverge': {'step': 3, 'rank': 1}} if versions['epsilon'] == '2.0' else {}")
    assert (ran.code, answer["outcome"]) == (0, "found")
    assert ran.out.startswith("FOUND  One of 7 package changes flips the outcome: epsilon 1.0 -> 2.0.\n")
    assert names(answer["changes"]) == set(LETTERS)
    (culprit,) = answer["culprits"]
    assert (culprit["name"], culprit["before"], culprit["after"]) == ("epsilon", "1.0", "2.0")
    assert answer["launches"] <= 2 * math.ceil(math.log2(7)) + 2
    where = answer["divergence"]
    assert (where["moment"], where["rank"], where["group"]) == ("step:3", 1, "parameters")
    assert "Without it, the other 6 changes gave the bits of the first set." in ran.out
    assert "  first divergence  " in ran.out


def test_tests_go_up_to_the_first_divergence_only(bench: Bench) -> None:
    rule = "{'slow': 0.3, **({'diverge': {'step': 2}} if versions['beta'] == '2.0' else {})}"
    before, after = {"alpha": "1.0", "beta": "1.0"}, {"alpha": "2.0", "beta": "2.0"}
    ran, answer = bench.bisect(rule, before=before, after=after)
    assert names(answer["culprits"]) == {"beta"}
    launches = Path(answer["out"]) / "launches"
    reached = {each.name: Trajectory.open(each / "trajectory").moments[-1].step for each in launches.iterdir()}
    assert (reached.pop("before"), reached.pop("after")) == (9, 9)
    assert all(2 <= step < 9 for step in reached.values())
    assert ran.err.count("killed as planned") == len(reached) == len(answer["tests"]) == 2


def test_a_pair_is_found_as_a_pair(bench: Bench) -> None:
    pair = "(versions['alpha'], versions['zeta']) == ('2.0', '2.0')"
    ran, answer = bench.bisect(
        f"{{'no_trace': True, **({{'diverge': {{'step': 2}}}} if {pair} else {{}})}}", localise=True
    )
    assert (ran.code, names(answer["culprits"])) == (0, {"alpha", "zeta"})
    assert answer["localisation"]["outcome"] == "unknown"
    assert "  module            The module is unknown: " in ran.out
    assert "2 of 7 package changes together flip the outcome: alpha 1.0 -> 2.0, zeta 1.0 -> 2.0." in ran.out


def test_sets_that_do_not_start_are_worked_around_and_reported(bench: Bench) -> None:
    rule = (
        "{'says': 'beta 2 needs zeta 2'} if versions['beta'] != versions['zeta'] else "
        "{'diverge': {'step': 2}} if versions['delta'] == '2.0' else {}"
    )
    ran, answer = bench.bisect(rule)
    assert (ran.code, names(answer["culprits"])) == (0, {"delta"})
    unresolved = [test for test in answer["tests"] if test["answer"] == "unresolved"]
    assert unresolved
    assert all("The launch failed: beta 2 needs zeta 2; see " in test["sentence"] for test in unresolved)
    assert "in between could not be launched; what was found may be larger than need be." in ran.out


def test_a_second_cause_is_told_and_the_module_of_the_first_is_named(bench: Bench) -> None:
    rule = "{'diverge': {'step': 2}} if '2.0' in (versions['alpha'], versions['beta']) else {}"
    before, after = (dict.fromkeys(("alpha", "beta", "gamma"), version) for version in ("1.0", "2.0"))
    ran, answer = bench.bisect(rule, before=before, after=after, localise=True)
    assert (ran.code, names(answer["culprits"])) == (0, {"alpha"})
    assert "Without it, the other 2 changes also gave other bits: there is another cause as well." in ran.out
    assert (answer["localisation"]["outcome"], answer["localisation"]["step"]) == ("module", 2)
    assert "  module            Step 2, rank 0, " in ran.out
    assert [each.name for each in (Path(answer["out"]) / "environments").iterdir() if each.name == "culprit"]
    assert answer["reproduce"].endswith("environments/culprit/bin/python")


def test_added_and_removed_packages_are_changes(bench: Bench) -> None:
    before = {"alpha": "1.0", "beta": "1.0", "gamma": "1.0"}
    after = {"alpha": "1.0", "delta": "1.0", "gamma": "1.5"}
    ran, answer = bench.bisect("{'diverge': {'step': 1}} if 'delta' in versions else {}", before=before, after=after)
    assert [change["sentence"] for change in answer["changes"]] == [
        "beta removed, 1.0",
        "delta added, 1.0",
        "gamma 1.0 -> 1.5",
    ]
    assert (ran.code, names(answer["culprits"])) == (0, {"delta"})


def test_where_no_change_flips_the_outcome_one_sentence_says_so(bench: Bench) -> None:
    ran, answer = bench.bisect("{}")
    assert (ran.code, answer["outcome"], answer["launches"]) == (1, "agree", 2)
    assert ran.out.startswith("AGREE  No package change flips the outcome: with all 7 changes made, ")
    assert answer["culprits"] == []


def test_equal_sets_are_not_launched(bench: Bench) -> None:
    ran, answer = bench.bisect("{}", after=BEFORE)
    assert (ran.code, answer["launches"]) == (1, 0)
    assert "The two sets are the same 9 packages" in ran.out


def test_a_side_that_cannot_be_launched_is_told_and_exits_3(bench: Bench) -> None:
    ran, answer = bench.bisect("{'says': 'alpha 2 is broken'} if versions['alpha'] == '2.0' else {}")
    assert (ran.code, answer["outcome"]) == (3, "unknown")
    assert "cannot be launched. The launch failed: alpha 2 is broken; see " in answer["sentence"]
    assert answer["sentence"].startswith("The second set, ")


def test_a_first_set_that_is_not_deterministic_is_no_evidence(bench: Bench) -> None:
    ran, answer = bench.bisect("{'random': {'step': 2}}")
    assert (ran.code, answer["outcome"]) == (3, "unknown")
    assert "The first set, launched twice, does not give the same bits" in answer["sentence"]
    assert answer["culprits"] == []


def test_a_package_that_cannot_be_installed_is_told_and_exits_3(bench: Bench) -> None:
    before = bench.lock("one.txt", {"alpha": "1.0"})
    after = bench.lock("two.txt", {"alpha": "9.9"})
    make_wheel(bench.wheels, "alpha", "1.0")
    make_wheel(bench.wheels, "torch", "0.0.1", torch_double())
    ran, _ = bench.run(before, after, "--find-links", str(bench.wheels), "--offline")
    assert ran.code == 3
    assert ran.err.splitlines()[-1].startswith("validator: alpha==9.9 cannot be installed: ")


def test_what_was_installed_once_is_used_again_unless_its_content_is_another(bench: Bench) -> None:
    rule = "{'diverge': {'step': 1}} if versions['alpha'] == '2.0' else {}"
    before, after = {"alpha": "1.0"}, {"alpha": "2.0"}
    bench.bisect(rule, before=before, after=after)
    layers = {each.name for each in (bench.cache / "megatron-change-validator" / "packages").iterdir()}
    assert any(name.startswith("alpha-1.0-") for name in layers)
    bench.bisect(rule, before=before, after=after)
    assert {each.name for each in (bench.cache / "megatron-change-validator" / "packages").iterdir()} == layers
    _, answer = bench.bisect("{}", before=before, after=after)  # another torch of the same version
    assert answer["outcome"] == "agree"


def test_sets_are_launched_where_it_is_asked_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine stands in for the cluster."""
    asked: list[Place] = []

    def here(place: Place, *_: object) -> tuple[LocalExecutor, None]:
        asked.append(place)
        return LocalExecutor(), None

    monkeypatch.setattr("validator.diagnose.bisect.command.executors", here)
    before, after = {"alpha": "1.0"}, {"alpha": "2.0"}
    rule = "{'diverge': {'step': 1}} if versions['alpha'] == '2.0' else {}"
    ran, answer = bench.bisect(rule, "--slurm", "--slurm-option", "partition=gpu", before=before, after=after)
    assert (ran.code, asked) == (0, [Place(slurm={"partition": "gpu"})])
    assert answer["reproduce"].endswith("/environments/culprit/bin/python --slurm --slurm-option partition=gpu")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--image", "train:42"), 2, "bisect does not launch in an image: its sets are links to files of this machine"),
        (("--slurm", "--slurm-option", "tasks_per_node=3"), 2, "2 ranks of a node do not share out among 3 tasks"),
        (("--slurm",), 3, "squeue is not installed here; --slurm needs Slurm's commands on PATH."),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_anything_is_installed(
    words: tuple[str, ...], code: int, says: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(bench.project.folder))
    ran, _ = bench.bisect("{}", *words)
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert says in ran.err
    assert not bench.cache.exists()


@pytest.mark.slow
def test_two_environments_are_bisected_from_their_own_files(bench: Bench, tmp_path: Path) -> None:
    """Nothing is installed; a package of the same version with other content is a change."""
    rule = "{'diverge': {'step': 2}} if __import__('beta').version == 'patched' else {}"
    for name, patched in (("one", False), ("two", True)):
        library = make_environment(tmp_path / name)
        unpack(library, "torch", "0.0.1", torch_double(rule))
        for letter in LETTERS:
            unpack(library, letter, "1.0" if letter in {"alpha", "beta"} else "1.0" if not patched else "2.0")
        if patched:
            (library / "beta.py").write_text("version = 'patched'\n")
        real_numpy(library)
    ran, answer = bench.run(str(tmp_path / "one"), str(tmp_path / "two"))
    assert ran.code == 0, ran.err
    assert [change["sentence"] for change in answer["culprits"]] == ["beta 1.0, other files"]
    assert names(answer["changes"]) == {*LETTERS} - {"alpha"}
    assert not (bench.cache / "megatron-change-validator" / "packages").exists()
    for name in ("one", "two"):
        assert not list((tmp_path / name).rglob("__pycache__")), "something was written into an environment"


@pytest.mark.parametrize(
    ("before", "after", "words", "says"),
    [
        ("nowhere.txt", "nowhere.txt", (), "'nowhere.txt' does not exist; name a lock file or an environment."),
        ("loose.txt", "good.txt", (), "'loose.txt', line 1: 'alpha>=1' is not pinned; write it like alpha==1.2.3."),
        ("good.txt", "option.txt", (), "line 1: the option --index-url is not accepted here"),
        ("good.txt", "twice.txt", (), "line 2: alpha is pinned twice; leave one line."),
        ("good.txt", "empty.txt", (), "'empty.txt' pins no package"),
        ("good.txt", "good.txt", ("--find-links", "nowhere"), "is no folder; --find-links takes a folder of wheels."),
        ("good.txt", "good.txt", ("--base", "nowhere"), "'nowhere' is no executable file"),
    ],
)
def test_what_cannot_be_read_is_a_usage_error(
    before: str, after: str, words: tuple[str, ...], says: str, bench: Bench
) -> None:
    texts = {
        "loose.txt": "alpha>=1\n", "good.txt": "alpha==1\n", "option.txt": "--index-url somewhere\nalpha==1\n",
        "twice.txt": "alpha==1\nalpha==2\n", "empty.txt": "# nothing\n",
    }  # fmt: skip
    for name, text in texts.items():
        (bench.project.folder / name).write_text(text)
    ran, _ = bench.run(before, after, *words)
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.count("\n") == 1
