"""Reports as a check would make them, one for each verdict that a person meets often."""

from __future__ import annotations

from dataclasses import replace

from validator.report.model import (
    Divergence,
    EnvironmentDifferenceRow,
    GateReport,
    LaunchRow,
    Localisation,
    LocalisationOutcome,
    MetricDifference,
    Outcome,
    Report,
    SpreadRow,
    StepRow,
    TracedPlace,
    TracedValue,
    Verdict,
    WaivedFinding,
)

GOLDEN = {"recorded": "2026-11-20", "approver": "Ada Example", "reason": "first golden", "digest": "5f" * 16}

WAIVED = WaivedFinding(
    gate="resume",
    leaf="rng/expert-parallel-rng",
    ranks=(1,),
    places=("restore 3, setup to step 6",),
    observed="0f6c1d22a9be4470b1c37f62d5a8e913",
    reason="the checkpoint keys RNG states by pipeline and tensor rank only, so rank 1 comes back with rank 0's",
    link="https://github.com/NVIDIA/Megatron-LM/pull/6858",
    expires="2027-05-31",
)

WAIVED_LATER = replace(WAIVED, places=("restore 6, setup to step 10",), observed="77" * 16)

METRIC = MetricDifference(
    name="lm_loss",
    dtype="float32",
    expected="6.238412380218506",
    observed="6.238412857055664",
    expected_bits="40c7a112",
    observed_bits="40c7a113",
    ulps=1,
)

METRIC_DIVERGENCE = Divergence(
    kind="leaf",
    moment="step:1",
    rank=0,
    group="metrics",
    leaf="lm_loss",
    expected="aa" * 16,
    observed="bb" * 16,
    metric=METRIC,
    sentence="lm_loss differs from the golden's",
)

RESUME_DIVERGENCE = Divergence(
    kind="leaf",
    moment="setup:3",
    rank=1,
    group="optimizer",
    leaf="decoder.layers.1.mixer.in_proj.weight.exp_avg",
    expected="12" * 16,
    observed="34" * 16,
    metric=None,
    sentence="the restored tensor is not the one that the uninterrupted run had",
)

LOCALISATION = Localisation(
    outcome=LocalisationOutcome.MODULE,
    sentence="Step 1, rank 0, micro-batch 0, forward: the router is given the same twice, and returns other bits.",
    step=1,
    rank=0,
    micro_batch=0,
    phase="forward",
    module="decoder.layers.1.mlp.router",
    module_class="TopKRouter",
    file="megatron/core/transformer/moe/router.py",
    line=840,
    inputs=(TracedValue("input 0", "01" * 8, "01" * 8), TracedValue("rng/device", "02" * 8, "02" * 8)),
    outputs=(TracedValue("output 0", "c77f1f246c8ce037", "7a26f3b3d5e94125"),),
    following=(
        TracedPlace("forward", 0, "decoder.layers.1.mlp.router", "", inputs_differ=False, outputs_differ=True),
        TracedPlace(
            "collective", 0, "decoder.layers.1.mlp", "all_to_all_single", inputs_differ=True, outputs_differ=True
        ),
    ),
    attempts=1,
    shown=1,
)

STEPS = tuple(
    StepRow(step, {"lm_loss": f"{6.25 - step / 10}", "grad_norm": f"{2.5 - step / 8}"}) for step in range(1, 11)
)

LAUNCHES = (
    LaunchRow("reference", "the uninterrupted run", "1 to 10", "completed", 24.1, "out/reference/launch.log"),
    LaunchRow(
        "resume-1",
        "saves step 3, is killed after step 5",
        "1 to 5",
        "killed as planned",
        17.4,
        "out/resume-1/launch.log",
    ),
)

HOLDING = (
    GateReport("golden", Outcome.HOLDS, True, "10 steps equal the golden's on 2 ranks", launches=1, seconds=24.1),
    GateReport(
        "repeatability", Outcome.HOLDS, True, "the golden counts as an independent launch that agrees", launches=1
    ),
    GateReport(
        "resume",
        Outcome.HOLDS,
        True,
        "restores of steps 3 and 6 equal the uninterrupted run but for 1 waived defect",
        launches=3,
        waived=(WAIVED, WAIVED_LATER),
        seconds=52.8,
    ),
)


def passing() -> Report:
    return _report(
        Verdict.PASS, "10 steps equal the golden on every rank, and 2 restores resume to the same bits", HOLDING
    )


def changed() -> Report:
    groups = ("metrics", "gradients", "parameters", "main_parameters", "optimizer")
    spread = tuple(
        SpreadRow(f"step:{step}", group, min(62, 5 * step + index), 62, 2)
        for step in range(1, 11)
        for index, group in enumerate(groups)
        if step > 1 or group == "metrics"
    )
    golden = GateReport(
        "golden",
        Outcome.FAILS,
        True,
        "differs from the golden from step 1 on",
        launches=1,
        divergence=METRIC_DIVERGENCE,
        spread=spread,
        seconds=24.3,
        localisation=LOCALISATION,
    )
    repeatable = GateReport("repeatability", Outcome.HOLDS, True, "2 of 2 launches agree", launches=2, seconds=48.0)
    difference = (
        EnvironmentDifferenceRow("variables", "ATEN_CPU_CAPABILITY", "default", "avx2", True, "claimed"),
        EnvironmentDifferenceRow("packages", "filelock", "4.3.1", "4.3.2", False, "claimed"),
        EnvironmentDifferenceRow("software", "kernel", "6.1.0-18", None, False, "observed"),
    )
    return _report(
        Verdict.CHANGED,
        "2 launches agree with each other and differ from the golden, first at step 1, rank 0, metrics, lm_loss",
        (golden, repeatable, HOLDING[2]),
        environment_difference=difference,
        stamps=("--env ATEN_CPU_CAPABILITY=avx2",),
        unexercised=("buffers",),
        next_step="ATEN_CPU_CAPABILITY can change bits: undo it, or record a new golden with a name and a reason.",
    )


def nondeterministic() -> Report:
    repeatable = GateReport(
        "repeatability",
        Outcome.FAILS,
        True,
        "2 launches of one environment differ from step 1 on",
        launches=2,
        divergence=METRIC_DIVERGENCE,
        spread=(SpreadRow("step:1", "metrics", 1, 14, 1),),
        seconds=48.0,
        localisation=replace(LOCALISATION, attempts=3, shown=2),
    )
    return _report(Verdict.NONDETERMINISTIC, "2 launches of one environment differ", (HOLDING[0], repeatable))


def resume_broken() -> Report:
    resume = GateReport(
        "resume",
        Outcome.FAILS,
        True,
        "the restore of step 3 differs from the uninterrupted run",
        launches=3,
        divergence=RESUME_DIVERGENCE,
        spread=(
            SpreadRow("setup:3", "optimizer", 1, 124, 1),
            SpreadRow("entry:3", "optimizer", 1, 124, 1),
            SpreadRow("step:4", "parameters", 3, 62, 2),
            SpreadRow("step:4", "optimizer", 2, 124, 1),
        ),
        waived=(WAIVED, WAIVED_LATER),
        seconds=52.8,
    )
    return _report(
        Verdict.RESUME_BROKEN,
        "after the restore of step 3, optimizer state on rank 1 is not that of the uninterrupted run",
        (*HOLDING[:2], resume),
        suggested_waivers="waivers:\n  - gate: resume\n    leaf: optimizer/in_proj.weight.exp_avg\n    ranks: [1]\n",
        unused_waivers=("resume: rng/cpu on every rank",),
        expired_waivers=("resume: buffers/expert_bias expired on 2026-10-31",),
    )


def no_baseline() -> Report:
    golden = GateReport("golden", Outcome.NO_BASELINE, True, "there is no golden for nemotron-cpu on cpu-x86-64-v3-1x2")
    return _report(
        Verdict.NO_BASELINE,
        "there is no golden to compare with; the other gates hold",
        (golden, *HOLDING[1:]),
        golden=None,
        next_step="record one: validator golden record nemotron-cpu --reason '…'",
    )


def error() -> Report:
    return _report(
        Verdict.ERROR,
        "the launch 'reference' ended after step 2 with exit status 1; see out/reference/launch.log",
        (GateReport("golden", Outcome.ERROR, True, "the reference launch did not come to its end", launches=1),),
        golden=None,
    )


SAMPLES = {
    "pass": passing,
    "changed": changed,
    "nondeterministic": nondeterministic,
    "resume_broken": resume_broken,
    "no_baseline": no_baseline,
    "error": error,
}


def _report(verdict: Verdict, sentence: str, gates: tuple[GateReport, ...], **more: object) -> Report:
    values: dict[str, object] = {
        "golden": GOLDEN,
        "launches": LAUNCHES,
        "steps": STEPS,
        "reproduce": "validator check nemotron-cpu --out out",
        "out": "out",
        "environment": {"packages": {"torch": "2.14.1"}, "threads": 1, "limit": float("inf")},
    }
    return Report(
        verdict,
        sentence,
        "nemotron-cpu",
        "cpu-x86-64-v3-1x2",
        "2026-11-29T12:00:00Z",
        101.3,
        gates,
        **{**values, **more},  # type: ignore[arg-type]
    )
