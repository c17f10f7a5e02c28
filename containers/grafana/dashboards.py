"""The dashboards, as code: ``python containers/grafana/dashboards.py`` writes them to dashboards/.

They are provisioned from there; a test keeps the files equal to what this says. Every query takes the largest value
over what differs only in where it was scraped (job, instance): a Pushgateway and a textfile give the same picture.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as model_common
from grafana_foundation_sdk.models import dashboard as model

FOLDER = Path(__file__).parent / "dashboards"

#: The data source is chosen at the top of each dashboard.
_SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
_CHOSEN = '{pipeline=~"$pipeline",hardware_class=~"$hardware_class"}'
_KEY = "pipeline,hardware_class"
_NAMED = "{{pipeline}} on {{hardware_class}}"

RATIO, SECONDS, BYTES, DAYS, STEP = "percentunit", "s", "bytes", "d", "none"
HERTZ, CELSIUS, WATTS = "hertz", "celsius", "watt"


def latest(metric: str, *labels: str, chosen: str = "") -> str:
    """One value for each pipeline, hardware class and each of ``labels``; ``chosen`` selects more labels."""
    selector = _CHOSEN if not chosen else f"{_CHOSEN[:-1]},{chosen}}}"
    return f"max by ({','.join((_KEY, *labels))}) ({metric}{selector})"


def days_since(metric: str, *labels: str) -> str:
    return f"(time() - {latest(metric, *labels)}) / 86400"


@dataclass(frozen=True, slots=True)
class Curve:
    """One query of a panel and the name of its series."""

    expression: str
    name: str = _NAMED


def curves(title: str, about: str, unit: str, *shown: Curve, width: int = 12) -> timeseries.Panel:
    panel = (
        timeseries.Panel().title(title).description(about).unit(unit).datasource(_SOURCE).span(width).height(9)
        .line_width(2).fill_opacity(0).span_nulls(True)
        .legend(common.VizLegendOptions().show_legend(True).placement(model_common.LegendPlacement.BOTTOM)
                .display_mode(model_common.LegendDisplayMode.LIST))
        .tooltip(common.VizTooltipOptions().mode(model_common.TooltipDisplayMode.MULTI))
    )  # fmt: skip
    for query in queries(shown):
        panel = panel.with_target(query)
    return panel


def figure(title: str, about: str, unit: str, *shown: Curve, width: int = 6) -> stat.Panel:
    panel = stat.Panel().title(title).description(about).unit(unit).datasource(_SOURCE).span(width).height(6)
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    for query in queries(shown):
        panel = panel.with_target(query)
    return panel


def states(title: str, about: str, *shown: Curve, width: int = 24) -> statetimeline.Panel:
    panel = statetimeline.Panel().title(title).description(about).datasource(_SOURCE).span(width).height(9)
    panel = panel.show_value(model_common.VisibilityMode.NEVER).merge_values(True)
    for query in queries(shown):
        panel = panel.with_target(query)
    return panel


def queries(shown: Sequence[Curve]) -> list[prometheus.Dataquery]:
    return [
        prometheus.Dataquery().expr(curve.expression).legend_format(curve.name).ref_id(chr(ord("A") + index))
        for index, curve in enumerate(shown)
    ]


def board(uid: str, title: str, about: str, *panels: Any) -> dashboard.Dashboard:
    made = (
        dashboard.Dashboard(title).uid(uid).description(about).tags(["megatron-change-validator"]).readonly()
        .time("now-90d", "now").refresh("5m").timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )  # fmt: skip
    for name, label in (("pipeline", "Pipeline"), ("hardware_class", "Hardware class")):
        other = ', pipeline=~"$pipeline"' if name == "hardware_class" else ""
        query = f'label_values(validator_check_timestamp_seconds{{pipeline!=""{other}}}, {name})'
        variable = (
            dashboard.QueryVariable(name).label(label).query(query).datasource(_SOURCE).multi(True).include_all(True)
            .all_value(".*").refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
        )  # fmt: skip
        made = made.with_variable(variable)
    for panel in panels:
        made = made.with_panel(panel)
    return made


def overhead() -> dashboard.Dashboard:
    """What determinism costs, over time."""
    arm = "{{arm}}: " + _NAMED
    return board(
        "validator-overhead",
        "Validator: what determinism costs",
        "Step time of deterministic mode over the fastest default mode, from paired launches.",
        curves(
            "Overhead, its 95 % interval and the budget",
            "Measured from pairs of launches. An interval whose lower bound is above the budget fails.",
            RATIO,
            Curve(latest("validator_overhead_ratio"), "overhead: " + _NAMED),
            Curve(latest("validator_overhead_lower_ratio"), "lower bound: " + _NAMED),
            Curve(latest("validator_overhead_upper_ratio"), "upper bound: " + _NAMED),
            Curve(latest("validator_overhead_budget_ratio"), "budget: " + _NAMED),
            width=24,
        ),
        curves(
            "Step time of both arms",
            "Absolute, since a ratio is blind where both arms slow down.",
            SECONDS,
            Curve(latest("validator_step_time_seconds", "arm"), arm),
        ),
        curves(
            "Tokens per second", "Of the whole job.", STEP, Curve(latest("validator_tokens_per_second", "arm"), arm)
        ),
        curves(
            "Where the difference goes",
            "Step time in each phase, deterministic minus default, from profiled launches.",
            SECONDS,
            Curve(
                f"{latest('validator_phase_time_seconds', 'phase', chosen='arm="deterministic"')} - "
                f"{latest('validator_phase_time_seconds', 'phase', chosen='arm="default"')}",
                "{{phase}}: " + _NAMED,
            ),
        ),
        curves(
            "Peak memory of a rank",
            "Of the rank that held most.",
            BYTES,
            Curve(latest("validator_peak_memory_bytes", "arm"), arm),
        ),
        figure(
            "Noise of the pairs",
            "The least overhead that the last measurement could tell from none.",
            RATIO,
            Curve(latest("validator_overhead_noise_floor_ratio")),
        ),
        figure("Pairs", "Pairs behind the last measurement.", STEP, Curve(latest("validator_overhead_pairs"))),
        figure(
            "Age of the measurement",
            "Days since the overhead was last measured.",
            DAYS,
            Curve(days_since("validator_overhead_timestamp_seconds")),
            width=12,
        ),
    )


def gpus() -> dashboard.Dashboard:
    """On what the overhead was measured: a slower step may be a hotter GPU."""
    arm = "{{arm}}: " + _NAMED
    return board(
        "validator-gpus",
        "Validator: GPUs under the measurement",
        "State of rank 0's GPU at the end of the launches that an overhead was measured on. Empty for CPU pipelines.",
        curves(
            "Clock",
            "Of the streaming multiprocessors, median of an arm's launches, and the highest that the GPU may run at.",
            HERTZ,
            Curve(latest("validator_gpu_sm_clock_hertz", "arm"), arm),
            Curve(latest("validator_gpu_sm_clock_max_hertz"), "limit: " + _NAMED),
        ),
        curves(
            "Power",
            "Median of an arm's launches, and what the GPU may take.",
            WATTS,
            Curve(latest("validator_gpu_power_watts", "arm"), arm),
            Curve(latest("validator_gpu_power_limit_watts"), "limit: " + _NAMED),
        ),
        curves(
            "Temperature",
            "Highest of an arm's launches.",
            CELSIUS,
            Curve(latest("validator_gpu_temperature_celsius", "arm"), arm),
        ),
        curves(
            "Timed launches that were held back",
            "By what kept the clocks below their maximum. Such a measurement says less about the software.",
            STEP,
            Curve(latest("validator_gpu_held_back_launches", "reason"), "{{reason}}: " + _NAMED),
        ),
        curves(
            "Memory errors",
            "ECC, since the driver was loaded. Errors that are counted during a launch end its check in an error.",
            STEP,
            Curve(latest("validator_gpu_memory_errors", "kind"), "{{kind}}: " + _NAMED),
            width=24,
        ),
    )


def checks() -> dashboard.Dashboard:
    """What checks found."""
    return board(
        "validator-checks",
        "Validator: checks",
        "Verdicts, gates, resume health and durations of the runs that are pushed.",
        states(
            "Verdict",
            "The verdict of the last check.",
            Curve(f"{latest('validator_check_verdict', 'verdict')} == 1", "{{verdict}}: " + _NAMED),
        ),
        states(
            "Resume health",
            "Outcome of the resume gate.",
            Curve(
                f"{latest('validator_gate_outcome', 'outcome', chosen='gate="resume"')} == 1", "{{outcome}}: " + _NAMED
            ),
        ),
        states(
            "Gates",
            "Outcome of every gate.",
            Curve(f"{latest('validator_gate_outcome', 'gate', 'outcome')} == 1", "{{gate}} {{outcome}}: " + _NAMED),
        ),
        figure(
            "Hours since a check succeeded",
            "Exit status 0.",
            "h",
            Curve(f"(time() - {latest('validator_check_last_success_timestamp_seconds')}) / 3600"),
        ),
        figure(
            "Hours since a check ran",
            "Whatever it found.",
            "h",
            Curve(f"(time() - {latest('validator_check_timestamp_seconds')}) / 3600"),
        ),
        figure(
            "First divergent step",
            "Of the last check; nothing where it found no divergence.",
            STEP,
            Curve(latest("validator_first_divergent_step")),
        ),
        figure(
            "Gates that could not be answered",
            "Of the last check; what kept them from it is in validator_check_errors, by kind.",
            STEP,
            Curve(f"sum by ({_KEY}) ({latest('validator_check_errors', 'kind')})"),
        ),
        curves("Duration of a check", "Wall clock.", SECONDS, Curve(latest("validator_check_duration_seconds"))),
        curves(
            "Longest launch of each part",
            "Wall clock.",
            SECONDS,
            Curve(latest("validator_launch_duration_seconds", "launch"), "{{launch}}: " + _NAMED),
        ),
        curves(
            "Duration of each gate",
            "Wall clock in its launches.",
            SECONDS,
            Curve(latest("validator_gate_duration_seconds", "gate"), "{{gate}}: " + _NAMED),
        ),
        states(
            "Gates that decide the verdict",
            "Required ones; the others are advisory.",
            Curve(f"{latest('validator_gate_required', 'gate')} == 1", "{{gate}}: " + _NAMED),
            width=12,
        ),
    )


def goldens() -> dashboard.Dashboard:
    """What is approved and what is tolerated."""
    left = f"({latest('validator_waiver_expiry_timestamp_seconds', 'gate')} - time()) / 86400"
    return board(
        "validator-goldens",
        "Validator: goldens and waivers",
        "Age of the goldens, waivers and the days that they have left, and what the self-test catches.",
        figure(
            "Age of the golden",
            "Days since it was recorded.",
            DAYS,
            Curve(days_since("validator_golden_recorded_timestamp_seconds")),
            width=12,
        ),
        figure(
            "Days until a waiver expires",
            "The next one of each gate.",
            DAYS,
            Curve(left, "{{gate}}: " + _NAMED),
            width=12,
        ),
        curves(
            "Waivers",
            "Known defects that are tolerated.",
            STEP,
            Curve(latest("validator_waivers", "gate"), "{{gate}}: " + _NAMED),
        ),
        curves(
            "Self-test",
            "Effective faults that were caught, and that were caught and named by their place.",
            RATIO,
            Curve(latest("validator_selftest_caught_ratio"), "caught: " + _NAMED),
            Curve(latest("validator_selftest_named_ratio"), "named: " + _NAMED),
        ),
        curves(
            "Size and age of the self-test",
            "Faults that changed any bit, and days since it ran.",
            STEP,
            Curve(latest("validator_selftest_effective_faults"), "faults: " + _NAMED),
            Curve(days_since("validator_selftest_timestamp_seconds"), "days: " + _NAMED),
        ),
    )


def documents() -> dict[str, str]:
    """File name -> content of every dashboard."""
    made = (overhead(), gpus(), checks(), goldens())
    built = [json.loads(JSONEncoder(sort_keys=True, indent=2).encode(each.build())) for each in made]
    for each in built:
        for number, panel in enumerate(each["panels"], start=1):
            panel["id"] = number
    return {f"{each['uid']}.json": json.dumps(each, indent=2, sort_keys=True) + "\n" for each in built}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in documents().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
