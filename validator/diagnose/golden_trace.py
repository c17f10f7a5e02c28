"""The module trace of step 1 that is recorded with a golden, so that later differences there can be localised."""

from __future__ import annotations

from validator.check.launches import Launches
from validator.check.plan import LaunchPlan
from validator.diagnose.traces import pack_trace
from validator.errors import LaunchError
from validator.trajectory.reader import Trajectory


def trace_of_step_1(launches: Launches, golden: Trajectory) -> bytes:
    """Launch once more through step 1 with a trace, and pack it.

    Raises ``LaunchError`` where that fails or the traced launch does not have the golden's bits, ``TrajectoryError``
    where the trace is not whole.
    """
    plan = LaunchPlan("trace", "traces step 1 for the golden", kill_after=1, trace=1)
    launched = launches.run(plan)
    for moment in launched.trajectory.moments:
        if launched.trajectory.moment_digest(moment) != golden.moment_digest(moment):
            raise LaunchError(f"the traced launch has other bits at {moment} than the one without a trace.")
    return pack_trace(launches.folder(plan.name) / "trace")
