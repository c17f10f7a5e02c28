"""A bisection through a real one-node Slurm: sets are put together here, and launched there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnose.bisect.test_command import Bench, names
from tests.project import Project
from tests.system.slurm_cluster import Cluster

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def test_a_package_is_found_by_jobs(
    project: Project, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before, after = {"alpha": "1.0", "beta": "1.0"}, {"alpha": "2.0", "beta": "2.0"}
    rule = "{'diverge': {'step': 2}} if versions['beta'] == '2.0' else {}"
    where = ("--slurm", "--slurm-option", "queue_seconds=60")
    ran, answer = Bench(project, tmp_path / "cache").bisect(rule, *where, before=before, after=after)
    assert (ran.code, names(answer["culprits"])) == (0, {"beta"}), ran.err
    assert answer["divergence"]["moment"] == "step:2"
    jobs = cluster.ask("scontrol", "show", "jobs", "--oneliner")
    assert {"before", "after", "set-01"} <= {each.name for each in (Path(answer["out"]) / "launches").iterdir()}
    for name in ("before", "after", "set-01"):
        folder = Path(answer["out"]) / "launches" / name
        assert f"StdOut={folder}/batch.txt" in jobs, name
    assert answer["reproduce"].endswith("/environments/culprit/bin/python --slurm --slurm-option queue_seconds=60")
