"""Carries out the launches of one check: folders, requests, live comparison, recorder proof, sealing."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from validator.check import samples
from validator.check.arguments import launch_arguments, saved_step
from validator.check.plan import LaunchPlan
from validator.check.recorder import Proof, prove, prove_save
from validator.environment import Environment, from_claims
from validator.errors import LaunchError, TrajectoryError
from validator.execute.launch import Ending, Executor, LaunchOutcome, Surroundings
from validator.execute.nvml_watch import no_memory_errors
from validator.execute.request import LaunchRequest
from validator.execute.untrusted import remove_tree
from validator.pipeline import Corpus, Pipeline
from validator.report.model import LaunchRow
from validator.report.progress import Progress
from validator.report.text import brief, counted
from validator.trajectory.follower import Follower
from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.reader import Trajectory
from validator.trajectory.seal import seal

#: What reading results raises that nobody's recorder wrote: code under test may write anything.
SENSELESS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

#: Says how a moment just finished stands, given what the launch has recorded so far: ``equal to the golden so far``.
Standing = Callable[[Follower, Moment], str]


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch that came to its end, and what it left behind. ``proof`` is about its recorder."""

    plan: LaunchPlan
    outcome: LaunchOutcome
    trajectory: Trajectory
    environment: Environment
    proof: Proof


@final
@dataclass(slots=True)
class Launches:
    """The launches of one check, one after the other, each in a folder of its own under ``out``/launches.

    ``switches`` and ``stamps`` go into every request; ``rows`` collects what the report says of each launch, the failed
    ones as well. ``total`` is how many are expected, for the progress display. ``base`` launches in the golden's own
    environment instead, with the same folder and rows; ``label`` is what that is called where it is no image.
    """

    pipeline: Pipeline
    hardware_class: str
    surroundings: Surroundings
    executor: Executor
    out: Path
    progress: Progress
    total: int
    stamps: tuple[str, ...] = ()
    switches: Mapping[str, Any] = field(default_factory=dict)
    draw: random.Random = field(default_factory=random.SystemRandom)
    rows: list[LaunchRow] = field(default_factory=list)
    base: Launches | None = None
    label: str = ""

    def folder(self, name: str) -> Path:
        """Everything of one launch: request, log, data, checkpoints, trajectory."""
        return self.out / "launches" / name

    def run(self, plan: LaunchPlan, standing: Standing | None = None) -> Launched:
        """Carry out one launch. Raises ``LaunchError`` where it fails or leaves no whole trajectory."""
        folder = self.folder(plan.name)
        computation = self.pipeline.computation
        self.progress.launch(
            plan.name, plan.purpose, plan.kill_after or computation.steps, len(self.rows) + 1, self.total
        )
        started = time.monotonic()
        reached = plan.restore
        ended = "failed"
        try:
            request = self._request(plan, folder)
            follower = Follower(request.trajectory, computation.world_size)

            def on_progress(new: Sequence[Moment]) -> None:
                nonlocal reached
                note = ""
                for moment in new:
                    reached = moment.step
                    note = standing(follower, moment) if standing is not None else ""
                self.progress.step(reached if reached > plan.restore else 0, note)

            with no_memory_errors(request.device, executor=self.executor, folder=folder):
                outcome = self.executor.launch(
                    request, self.surroundings, log=folder / "log.txt",
                    limit_seconds=self.pipeline.policy.launch_seconds, watch=follower,
                    on_progress=on_progress, stop_when=self._kill_when(plan, folder),
                    on_wait=lambda why: self.progress.step(0, why),
                )  # fmt: skip
            launched = self._take_in(plan, request, outcome)
            ended = str(outcome.ended)
            return launched
        except BrokenPipeError:
            raise  # nobody reads what the progress display writes: not the launch's matter
        except OSError as error:
            raise LaunchError(
                f"Writing under {folder} failed: {error.strerror or error}; free space or change --out."
            ) from error
        except SENSELESS as error:
            raise LaunchError(
                f"The launch left results that make no sense ({type(error).__name__}: {brief(error)}); see {folder}."
            ) from error
        except Exception:
            raise
        except BaseException:  # Ctrl-C, SIGTERM
            ended = "interrupted"
            raise
        finally:
            self.progress.end(ended)
            steps = f"{plan.restore + 1}..{reached}" if reached > plan.restore else "none"
            seconds = time.monotonic() - started
            self.rows.append(LaunchRow(plan.name, plan.purpose, steps, ended, seconds, str(folder / "log.txt")))

    def discard_checkpoints(self, plans: Sequence[LaunchPlan]) -> None:
        """Remove what the launches saved: it is the largest part of a run, and of no use once the gate holds."""
        for plan in plans:
            with contextlib.suppress(OSError):
                remove_tree(self.folder(plan.name) / "checkpoints")

    def _request(self, plan: LaunchPlan, folder: Path) -> LaunchRequest:
        computation = self.pipeline.computation
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise LaunchError(f"{folder} exists already; change --out to an empty folder.") from None
        checkpoints = folder / "checkpoints" if plan.save else None
        load = self.folder(plan.load_from) / "checkpoints" if plan.load_from else None
        data = computation.data
        last = plan.kill_after or computation.steps
        return LaunchRequest(
            device=str(computation.device),
            spec=str(computation.spec),
            arguments=tuple(launch_arguments(computation, plan, folder, checkpoints, load)),
            corpus=_corpus(data) if isinstance(data, Corpus) else None,
            ranks=computation.world_size,
            steps=computation.steps,
            seed=computation.seed,
            trajectory=folder / "trajectory",
            scratch=folder,
            restore_step=plan.restore or None,
            samples=samples.choose(self.draw, computation.world_size, plan.restore, last),
            flips=self.draw.getrandbits(32),
            stamps=self.stamps,
            switches=self.switches,
            trace=plan.trace,
        )

    def _kill_when(self, plan: LaunchPlan, folder: Path) -> Callable[[Sequence[Moment]], bool] | None:
        """A launch is killed once its last step is finished on all ranks, and its save, if it has one, complete."""
        if plan.kill_after is None:
            return None
        save, after = 0 if plan.save is None else plan.save.step, Moment(plan.kill_after)
        return lambda finished: after in finished and saved_step(folder / "checkpoints") >= save

    def _take_in(self, plan: LaunchPlan, request: LaunchRequest, outcome: LaunchOutcome) -> Launched:
        """Seal what the launch left behind, and look at its recorder."""
        try:
            claims = json.loads(request.claims_file.read_text(encoding="utf-8"))
            if not isinstance(claims, dict):
                raise TypeError("no mapping")
        except (OSError, ValueError, TypeError) as error:
            raise LaunchError(
                f"The launch said nothing readable about its environment ({brief(error)}); see {outcome.log}."
            ) from error
        host, computation = self.executor.host(), self.pipeline.computation.to_json()
        try:
            environment = from_claims(claims, host, computation, self.executor.observed)
        except TrajectoryError as error:
            raise TrajectoryError(brief(error)) from error
        header = {
            "pipeline": self.pipeline.name,
            "hardware_class": self.hardware_class,
            "computation": self.pipeline.computation.to_json(),
            "launch": plan.name,
            "restore": plan.restore,
            "stamps": list(self.stamps),
        }
        # Beside its steps, a launch records when it is set up and when it enters the loop.
        trajectory = seal(request.trajectory, header, environment.to_json(), most_moments=request.steps + 2)
        self._insist(plan, trajectory, outcome)
        good, problems = samples.examine(trajectory, request, request.samples)
        samples.discard(request.samples_directory)
        if outcome.ended is Ending.KILLED:
            proof = Proof(samples=good, problems=tuple(problems))
        else:
            proof = prove(trajectory, good, problems)
        if plan.save is not None:
            proof += prove_save(request)
        return Launched(plan, outcome, trajectory, environment, proof)

    def _insist(self, plan: LaunchPlan, trajectory: Trajectory, outcome: LaunchOutcome) -> None:
        """A launch counts only with every step recorded on all ranks, through the last one, or the one after which it
        was killed, and with its save complete.
        """
        computation, killed = self.pipeline.computation, outcome.ended is Ending.KILLED
        # One that was killed as planned had its save complete; the kill may have cut the tracker's next writing short.
        if plan.save is not None and not killed and saved_step(self.folder(plan.name) / "checkpoints") < plan.save.step:
            raise LaunchError(f"The checkpoint of step {plan.save.step} was never completed; see {outcome.log}.")
        if trajectory.world_size != computation.world_size:
            ranks = f"{counted(trajectory.world_size, 'rank')}, and the pipeline has {computation.world_size}"
            raise LaunchError(f"The launch recorded {ranks}; see {outcome.log}.")
        last = plan.kill_after if killed and plan.kill_after is not None else computation.steps
        recorded = frozenset(moment.step for moment in trajectory.moments if moment.phase is Phase.STEP)
        lacking = [step for step in range(plan.restore + 1, last + 1) if step not in recorded]
        if not lacking:
            return
        if not killed and trajectory.moments and not any(step > lacking[0] for step in recorded):
            reached = f"step {lacking[0] - 1} of {last}"
            raise LaunchError(f"The launch ended by itself after {reached}; see {outcome.log}.")
        raise LaunchError(f"Step {lacking[0]} is not recorded on all ranks; see {outcome.log}.")


def _corpus(corpus: Corpus) -> dict[str, int]:
    return {"documents": corpus.documents, "vocabulary": corpus.vocabulary, "seed": corpus.seed}


def against(expected: Trajectory, name: str, leave_out: frozenset[Group] = frozenset()) -> Standing:
    """Compare live with a whole trajectory, step by step until the first difference, but for the groups in
    ``leave_out``.
    """
    first: list[Moment] = []
    known = frozenset(expected.moments)

    def equal(follower: Follower, moment: Moment) -> bool:
        if not leave_out:
            return follower.moment_digest(moment) == expected.moment_digest(moment)
        return all(
            follower.groups(rank, moment).get(group) == digest
            for rank in expected.ranks
            for group, digest in expected.groups(rank, moment).items()
            if group not in leave_out
        )

    def standing(follower: Follower, moment: Moment) -> str:
        if not first and moment.phase is Phase.STEP and not (moment in known and equal(follower, moment)):
            first.append(moment)
        return f"differs from {name} since step {first[0].step}" if first else f"equal to {name} so far"

    return standing
