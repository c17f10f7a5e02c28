"""From a YAML document to a pipeline; every refusal names file, line, key, the value found and those accepted."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from validator.pipeline.arguments import check, split
from validator.pipeline.document import Item, Mapping, Place, read_document, shown
from validator.pipeline.limits import Limits
from validator.pipeline.model import (
    Computation,
    Corpus,
    Device,
    Gate,
    Pipeline,
    Policy,
    Requirement,
    Save,
    SaveMode,
    Spec,
    TokenFiles,
)
from validator.pipeline.overhead import OverheadPolicy, read_overhead
from validator.pipeline.rules import check_computation, check_policy, check_waivers
from validator.pipeline.suggest import LINK_TO_WRITE, REASON_TO_WRITE
from validator.pipeline.triggers import Triggers
from validator.pipeline.waivers import Sighting, Span, Waiver
from validator.trajectory.groups import Group

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_MAXIMUM_SEED = 2**31 - 1
_DEFAULT_LAUNCH_SECONDS = 600

_SWITCH = {"true": True, "false": False}

#: Keys of ``policy.limits`` that are whole numbers from 1.
_COUNTED_LIMITS = ("memory_gibibytes", "shared_memory_gibibytes", "scratch_gibibytes", "disk_gibibytes", "processes")

#: Variables that the launch sets itself -> what to use instead.
_OWNED_VARIABLES = {"PYTHONPATH": "use --megatron to put a Megatron in front"} | dict.fromkeys(
    ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),
    "set computation.ranks instead",
)

#: More than one node needs a scheduler; where the launches run decides, not the file.
_MAXIMUM_NODES = 4096


_PARTS = ("name", "description", "computation", "policy")

#: A label of a runner, as GitHub has them.
_FILE = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/-]{0,200}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_pipeline(file: Path, policy_from: Path | None = None) -> Pipeline:
    """The pipeline that ``file`` holds; raises ``UsageError`` with one sentence for the first thing wrong with it.

    With ``policy_from`` the policy is that of another version of the file, and the file's own is not looked at.
    """
    top = read_document(file).mapping(_PARTS)
    name = top["name"].text()
    if not NAME.fullmatch(name):
        top["name"].place.refuse(
            f"is {shown(name)}; accepted are up to 64 lower-case letters, digits, '.', '_' and '-'"
        )
    if name != file.stem:
        top["name"].place.refuse(f"is {shown(name)}; accepted is the file's own name, {file.stem!r}")
    computation = _computation(top["computation"])
    other = top if policy_from is None else read_document(policy_from).mapping(_PARTS)
    policy = _policy(other["policy"], computation)
    return Pipeline(name, top["description"].text(), computation, policy, file)


def _computation(item: Item) -> Computation:
    keys = ["device", "ranks", "steps", "seed", "data", "arguments"]
    values = item.mapping(keys, ["nodes", "spec", "variables"])
    text = values["arguments"]
    if getattr(text.node, "style", None) == ">":
        text.place.refuse(
            "is a block written with >, in which comments swallow what follows; accepted is a block with |"
        )
    words = split(text.text("Megatron's command line"), _first_line(text))
    check(words, _first_line(text))
    computation = Computation(
        device=values["device"].choice(Device),
        nodes=values["nodes"].integer(1, _MAXIMUM_NODES) if "nodes" in values else 1,
        ranks=values["ranks"].integer(1, 1024),
        steps=values["steps"].integer(1, 1_000_000),
        seed=values["seed"].integer(1, _MAXIMUM_SEED),
        spec=values["spec"].choice(Spec) if "spec" in values else Spec.REFERENCE,
        data=_data(values["data"]),
        arguments=tuple(word.text for word in words),
        variables=_variables(values["variables"]) if "variables" in values else {},
    )
    check_computation(computation, values)
    return computation


def _first_line(text: Item) -> Place:
    """Where a text's first line stands: below its key where it is a block (``|``)."""
    block = getattr(text.node, "style", None) in ("|", ">")
    line = text.node.start_mark.line + (2 if block else 1)
    return Place(text.place.file, line, text.place.key)


def _data(item: Item) -> Corpus | TokenFiles:
    values = item.mapping([], ["corpus", "prefix"])
    if len(values.values) != 1:
        found = "both" if values.values else "neither"
        item.place.refuse(
            f"has {found}; accepted is exactly one of corpus (generated) and prefix (your .bin/.idx files)"
        )
    if "prefix" in values:
        written = values["prefix"].text()
        if "\0" in written or written.endswith((".bin", ".idx")):
            values["prefix"].place.refuse(f"is {shown(written)}; accepted is the path without .bin or .idx")
        return TokenFiles((item.place.file.parent / written).absolute(), written)
    corpus = values["corpus"].mapping(["documents", "vocabulary", "seed"])
    return Corpus(
        documents=corpus["documents"].integer(1, 10_000_000),
        vocabulary=corpus["vocabulary"].integer(2, 2**20),
        seed=corpus["seed"].integer(0, _MAXIMUM_SEED),
    )


def _variables(item: Item) -> dict[str, str]:
    variables = {}
    for name, value in item.pairs():
        if name in _OWNED_VARIABLES:
            value.place.refuse(f"is set by the validator itself; {_OWNED_VARIABLES[name]}")
        if not _VARIABLE.fullmatch(name):
            value.place.refuse("is no name of an environment variable; accepted are letters, digits and '_'")
        text = value.raw("a text or a number")
        if "\0" in text or "\n" in text:
            value.place.refuse(f"is {shown(text)}; accepted is a text of one line")
        variables[name] = text
    return variables


def _policy(item: Item, computation: Computation) -> Policy:
    values = item.mapping([], ["gates", "resume", "limits", "waivers", "triggers", "overhead"])
    gates = dict.fromkeys(Gate, Requirement.REQUIRED) | {Gate.OVERHEAD: Requirement.OFF}
    if "gates" in values:
        chosen = values["gates"].mapping([], list(Gate))
        gates |= {gate: chosen[gate].choice(Requirement) for gate in Gate if gate in chosen}
    saves: tuple[Save, ...] = ()
    if "resume" in values:
        listed = values["resume"].mapping(["saves"])["saves"].items()
        saves = tuple(_save(save.mapping(["step", "mode"]), computation) for save in listed)
    seconds, limits = _DEFAULT_LAUNCH_SECONDS, Limits()
    if "limits" in values:
        bounds = values["limits"].mapping(["launch_seconds"], [item.name for item in fields(Limits)])
        seconds = bounds["launch_seconds"].integer(1, 7 * 86_400)
        limits = _limits(bounds)
    check_policy(gates, saves, computation, values)
    waivers = values["waivers"].items() if "waivers" in values else []
    triggers = _triggers(values["triggers"]) if "triggers" in values else Triggers()
    policy = Policy(
        gates,
        saves,
        seconds,
        tuple(_waiver(waiver) for waiver in waivers),
        triggers=triggers,
        limits=limits,
        overhead=read_overhead(values["overhead"]) if "overhead" in values else OverheadPolicy(),
    )
    check_waivers(policy, computation, waivers)
    return policy


def _limits(values: Mapping) -> Limits:
    chosen: dict[str, Any] = {name: values[name].integer(1, 4_000_000) for name in _COUNTED_LIMITS if name in values}
    if "locked_memory" in values:
        text = values["locked_memory"].raw("true or false")
        if text not in _SWITCH:
            values["locked_memory"].place.refuse(f"is {shown(text)}; accepted is true or false")
        chosen["locked_memory"] = _SWITCH[text]
    return Limits(**chosen)


def _triggers(item: Item) -> Triggers:
    values = item.mapping([], ["paths", "images", "runner", "dockerfile"])
    default = Triggers()
    lists = [name for name in values.values if name != "dockerfile"]
    texts = {name: tuple(each.text("a pattern") for each in values[name].items()) for name in lists}
    for label, each in zip(
        texts.get("runner", ()), values["runner"].items() if "runner" in values else (), strict=True
    ):
        if not _LABEL.fullmatch(label):
            each.place.refuse(f"is {shown(label)}; accepted is a runner's label of letters, digits, '.', '_' and '-'")
    if "runner" in values and not texts["runner"]:
        values["runner"].place.refuse("is empty; accepted is at least one label")
    dockerfile = values["dockerfile"].text("a path") if "dockerfile" in values else ""
    if dockerfile and (not _FILE.fullmatch(dockerfile) or ".." in dockerfile.split("/")):
        accepted = "a path within the project, as containers/cpu/Dockerfile"
        values["dockerfile"].place.refuse(f"is {shown(dockerfile)}; accepted is {accepted}")
    return Triggers(
        texts.get("paths", default.paths), texts.get("images", default.images), texts.get("runner", default.runner),
        dockerfile,
    )  # fmt: skip


def _save(values: Mapping, computation: Computation) -> Save:
    return Save(values["step"].integer(1, computation.steps), values["mode"].choice(SaveMode))


def _waiver(item: Item) -> Waiver:
    values = item.mapping(["gate", "leaf", "seen", "reason", "link", "expires"])
    if values["gate"].raw("resume") != Gate.RESUME:
        found = shown(values["gate"].raw("resume"))
        why = "a changed golden is re-baselined, and what is not repeatable has no one wrong digest"
        values["gate"].place.refuse(f"is {found}; accepted is resume, since {why}")
    name = values["leaf"].text()
    group, separator, leaf = name.partition("/")
    if not separator or not leaf or group not in list(Group):
        values["leaf"].place.refuse(f"is {shown(name)}; accepted is GROUP/LEAF with a group out of {', '.join(Group)}")
    link = values["link"].text()
    if not re.fullmatch(r"https://\S+", link):
        values["link"].place.refuse(f"is {shown(link)}; accepted is an address that begins with https://")
    reason = " ".join(values["reason"].text().split())
    for key, given, unwritten in (("reason", reason, REASON_TO_WRITE), ("link", link, LINK_TO_WRITE)):
        if given == unwritten:
            why = "a waiver is for a defect that is understood"
            values[key].place.refuse(f"is still what a check suggests; write it: {why}")
    return Waiver(
        gate=Gate.RESUME,
        group=Group(group),
        leaf=leaf,
        seen=tuple(_sighting(sighting) for sighting in values["seen"].items()),
        reason=reason,
        link=link,
        expires=values["expires"].date(),
    )


def _sighting(item: Item) -> Sighting:
    values = item.mapping(["restore", "ranks", "moments", "observed"])
    accepted = "setup:K, entry:K or step:K, or two of them in order as in 'setup:3 .. step:5' or 'setup:3 .. end'"
    text = values["moments"].text(accepted)
    try:
        span = Span.parse(text)
    except ValueError:
        values["moments"].place.refuse(f"is {shown(text)}; accepted is {accepted}")
    observed = values["observed"].text("a digest of 32 hexadecimal digits")
    if not _DIGEST.fullmatch(observed):
        values["observed"].place.refuse(f"is {shown(observed)}; accepted is a digest of 32 hexadecimal digits")
    ranks = tuple(rank.integer(0, 1_000_000) for rank in values["ranks"].items())
    if not ranks or list(ranks) != sorted(set(ranks)):
        values["ranks"].place.refuse(f"is {shown(list(ranks))}; accepted is a list of ranks in ascending order")
    return Sighting(values["restore"].integer(0, 1_000_000), ranks, span, observed)
