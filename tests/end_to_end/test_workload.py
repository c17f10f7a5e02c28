"""Real launches of nemotron-cpu: fingerprints change nothing, the user's own data is read, and the loss falls."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.execute.launching import processes_of_launches_in
from validator.check.arguments import TRACKER, launch_arguments, launch_variables
from validator.check.plan import LaunchPlan
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.local import LocalExecutor
from validator.execute.request import LaunchRequest
from validator.pipeline import Corpus, Save, SaveMode, load_pipeline
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import leaves_name
from validator.trajectory.reader import Trajectory

ROOT = Path(__file__).resolve().parents[2]
CONTENT = Path(__file__).with_name("checkpoint_content.py")
PIPELINE = ROOT / "pipelines" / "nemotron-cpu.yaml"
COMPUTATION = load_pipeline("nemotron-cpu", ROOT).computation

#: Trajectories of the shipped pipelines, as real launches left them.
GOLDENS = sorted((ROOT / "golden").glob("*/*/trajectory"))


@dataclass(frozen=True)
class Launch:
    """A finished launch that saved a checkpoint after its last step."""

    folder: Path

    @property
    def trajectory(self) -> Path:
        return self.folder / "trajectory"

    @property
    def checkpoint(self) -> dict[str, str]:
        """What the checkpoint holds, shard by shard."""
        step = int((self.folder / "checkpoints" / TRACKER).read_text())
        assert step == COMPUTATION.steps
        saved = self.folder / "checkpoints" / f"iter_{step:07d}"
        command = [sys.executable, str(CONTENT), str(saved), str(self.folder)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, cwd=ROOT)
        found: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
        return found


def launch(folder: Path, *, record: bool) -> Launch:
    """Launch nemotron-cpu, with fingerprints and their proofs or without, and save after the last step."""
    folder.mkdir()
    data = COMPUTATION.data
    assert isinstance(data, Corpus)
    plan = LaunchPlan("saving", "saves its last step", save=Save(COMPUTATION.steps, SaveMode.SYNCHRONOUS))
    request = LaunchRequest(
        device=str(COMPUTATION.device),
        spec=str(COMPUTATION.spec),
        arguments=tuple(launch_arguments(COMPUTATION, plan, folder, folder / "checkpoints", None)),
        corpus={"documents": data.documents, "vocabulary": data.vocabulary, "seed": data.seed},
        ranks=COMPUTATION.world_size,
        steps=COMPUTATION.steps,
        seed=COMPUTATION.seed,
        trajectory=folder / "trajectory",
        scratch=folder,
        record=record,
        flips=20261129 if record else None,
    )
    surroundings = surround(folder / "kit", find_interpreter(None), None, launch_variables(COMPUTATION), {})
    LocalExecutor().launch(request, surroundings, log=folder / "log.txt", limit_seconds=400)
    assert processes_of_launches_in(folder) == []
    return Launch(folder)


@pytest.fixture(scope="module")
def with_fingerprints(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return launch(tmp_path_factory.mktemp("launches") / "with", record=True)


@pytest.fixture(scope="module")
def without_fingerprints(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    return launch(tmp_path_factory.mktemp("launches") / "without", record=False)


@pytest.mark.slow
def test_a_run_with_fingerprints_and_one_without_end_in_equal_checkpoints(
    with_fingerprints: Launch, without_fingerprints: Launch
) -> None:
    recorded, bare = with_fingerprints.checkpoint, without_fingerprints.checkpoint
    assert list(without_fingerprints.trajectory.iterdir()) == []
    assert (with_fingerprints.trajectory / leaves_name(0)).stat().st_size > 0
    # Not equal for want of content: parameters, both moments, main parameters, random states, and the common state.
    for part in ("decoder.layers.0.mixer", ".exp_avg @", ".exp_avg_sq @", ".param @", "rng_state", "common_state"):
        assert any(part in name for name in bare), part
    assert len(bare) > 300
    assert {name for name in bare.keys() | recorded.keys() if bare.get(name) != recorded.get(name)} == set()


@pytest.mark.slow
def test_the_users_own_token_files_are_read_from_where_the_pipeline_names_them(
    with_fingerprints: Launch, tmp_path: Path
) -> None:
    """The same tokens from the user's files give the same bits as the generated corpus."""
    generated = with_fingerprints.folder / "corpus" / "corpus_text_document"
    (tmp_path / "my data").mkdir()
    for suffix in (".bin", ".idx"):
        shutil.copy(generated.with_suffix(suffix), tmp_path / "my data" / f"tokens{suffix}")
    corpus = "    corpus: {documents: 400, vocabulary: 512, seed: 7}\n"
    text = PIPELINE.read_text()
    assert corpus in text
    (tmp_path / "nemotron-cpu.yaml").write_text(text.replace(corpus, "    prefix: my data/tokens\n"))

    command = [sys.executable, "-m", "validator", "record", "./nemotron-cpu.yaml", "--out", "out"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (folder,) = {path.parent for path in tmp_path.glob("out/**/trajectory.json")}
    trajectory = Trajectory.open(folder)
    assert trajectory.header["computation"]["data"] == {"prefix": "my data/tokens"}
    assert not list(tmp_path.rglob("corpus_text_document*"))  # nothing was generated instead
    for rank in range(COMPUTATION.world_size):
        name = leaves_name(rank)
        assert (folder / name).read_bytes() == (with_fingerprints.trajectory / name).read_bytes()


def values(trajectory: Trajectory, name: str, moment: Moment) -> list[float]:
    """The metric on every rank that has it."""
    found = (trajectory.metrics(rank, moment).get(name) for rank in trajectory.ranks)
    return [float(metric.value) for metric in found if metric is not None]


def test_the_shipped_pipelines_have_left_trajectories() -> None:
    assert any(path.parts[-3] == "nemotron-cpu" for path in GOLDENS)


@pytest.mark.parametrize("folder", GOLDENS, ids=lambda path: path.parts[-3])
def test_the_loss_falls_during_the_run(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    steps = sorted(moment for moment in trajectory.moments if str(moment).startswith("step:"))
    for name in ("lm_loss", "mtp_loss.1", "mtp_loss.2", "training_loss"):
        first, last = (max(values(trajectory, name, moment)) for moment in (steps[0], steps[-1]))
        assert last < first - 0.2, name
    # The first loss is that of a uniform guess over 512 tokens.
    assert abs(max(values(trajectory, "lm_loss", steps[0])) - math.log(512)) < 0.1


@pytest.mark.parametrize("folder", GOLDENS, ids=lambda path: path.parts[-3])
def test_the_reduced_loss_is_the_mean_over_all_ranks_tokens(folder: Path) -> None:
    trajectory = Trajectory.open(folder)
    for step in (1, 5, 10):
        by_content: dict[tuple[tuple[float, int], ...], tuple[float, int]] = {}
        for rank in trajectory.ranks:
            metrics = trajectory.metrics(rank, Moment(step))
            mine = [(float(metrics[f"lm_loss_sum.{index}"].value), int(metrics[f"tokens.{index}"].value))
                    for index in range(8) if f"tokens.{index}" in metrics]  # fmt: skip
            if mine:  # tensor-parallel ranks see the same sums
                by_content[tuple(mine)] = (sum(loss for loss, _ in mine), sum(count for _, count in mine))
        sums, tokens = (sum(column) for column in zip(*by_content.values(), strict=True))
        assert tokens == 8 * 64  # global batch × sequence length
        for loss in values(trajectory, "lm_loss", Moment(step)):
            assert loss == pytest.approx(sums / tokens, rel=1e-6)


@pytest.mark.parametrize("folder", GOLDENS, ids=lambda path: path.parts[-3])
def test_the_training_loss_adds_what_the_rank_trains_on(folder: Path) -> None:
    """LM + 0.3 / 2 · both multi-token-prediction losses + 1e-4 · every layer's sequence-wise auxiliary loss."""
    trajectory = Trajectory.open(folder)
    for rank in trajectory.ranks:
        metrics = {name: metric.value for name, metric in trajectory.metrics(rank, Moment(4)).items()}
        expected = metrics.get("lm_loss", 0.0)
        expected += 0.15 * (metrics.get("mtp_loss.1", 0.0) + metrics.get("mtp_loss.2", 0.0))
        expected += 1e-4 * sum(value for name, value in metrics.items() if name.startswith("seq_load_balancing_loss."))
        assert metrics["training_loss"] == pytest.approx(expected, rel=1e-12)


def test_every_state_group_holds_what_its_name_says() -> None:
    (folder,) = [path for path in GOLDENS if path.parts[-3] == "nemotron-cpu"]
    trajectory = Trajectory.open(folder)
    names = {group: {key.name for key in trajectory.leaves(0, Moment(3), group).table.keys} for group in Group}
    assert names[Group.RNG] == {
        "python", "numpy", "cpu", "device", "data-parallel-rng", "model-parallel-rng", "expert-parallel-rng",
    }  # fmt: skip
    assert names[Group.PARAMETERS] == names[Group.MAIN_PARAMETERS] == names[Group.GRADIENTS]
    moments = {f"{name}/{moment}" for name in names[Group.PARAMETERS] for moment in ("exp_avg", "exp_avg_sq")}
    assert moments <= names[Group.OPTIMIZER]
    assert names[Group.PARAMETERS] < names[Group.GATHERED_PARAMETERS]  # two ranks share the rest
    assert "decoder.layers.1.mlp.router.expert_bias" in names[Group.BUFFERS]
    assert "consumed_train_samples" in names[Group.DATA_POSITION]
    assert {"num_steps", "global_batch_size"} <= names[Group.SCHEDULE]
    assert len(names[Group.BATCH]) == 4 * 5  # micro-batches × tokens, labels, loss mask, attention mask, positions
