"""Combinations that cannot be: refused before anything is launched."""

from __future__ import annotations

import itertools
from collections.abc import Mapping as AbstractMapping
from collections.abc import Sequence

from validator.pipeline.arguments import integer_option
from validator.pipeline.document import Item, Mapping
from validator.pipeline.model import (
    STEPS_PAST_SAVE,
    Computation,
    Corpus,
    Device,
    Gate,
    Policy,
    Requirement,
    Save,
    SaveMode,
    Spec,
)
from validator.pipeline.waivers import Sighting, Waiver
from validator.trajectory.groups import PERSISTENT_GROUPS, Phase

#: A resume chain needs at least this many restores.
LEAST_RESTORES = 2


def check_computation(computation: Computation, values: Mapping) -> None:
    """Refuse a computation whose parts do not fit each other."""
    words, world = computation.arguments, computation.world_size
    place = values["arguments"].place
    if computation.device is Device.CPU and computation.spec is Spec.MEGATRON:
        values["spec"].place.refuse(
            "is 'megatron' on device cpu; accepted there is reference, without Transformer Engine"
        )
    tensor = integer_option(words, "--tensor-model-parallel-size", 1)
    pipeline = integer_option(words, "--pipeline-model-parallel-size", 1)
    context = integer_option(words, "--context-parallel-size", 1)
    expert = integer_option(words, "--expert-model-parallel-size", 1)
    expert_tensor = integer_option(words, "--expert-tensor-parallel-size", tensor)
    model = tensor * pipeline * context
    if world % model:
        sizes = f"tensor {tensor} x pipeline {pipeline} x context {context}"
        place.refuse(f"asks for parallel sizes {sizes} = {model}; accepted is a divisor of the {world} ranks in all")
    experts = expert_tensor * expert * pipeline
    if world % experts:
        sizes = f"expert tensor {expert_tensor} x expert {expert} x pipeline {pipeline}"
        place.refuse(f"asks for parallel sizes {sizes} = {experts}; accepted is a divisor of the {world} ranks in all")
    micro = integer_option(words, "--micro-batch-size", 0)
    batch = integer_option(words, "--global-batch-size", 0)
    share = micro * (world // model)
    if micro and batch and batch % share:
        problem = f"sets --global-batch-size {batch}; accepted is a multiple of micro batch {micro} x data parallel"
        place.refuse(f"{problem} {world // model} = {share}")
    vocabulary = integer_option(words, "--vocab-size", 0)
    if isinstance(computation.data, Corpus) and vocabulary and computation.data.vocabulary > vocabulary:
        problem = (
            f"has a corpus of vocabulary {computation.data.vocabulary}; accepted is at most --vocab-size {vocabulary}"
        )
        values["data"].place.refuse(problem)


def check_policy(
    gates: AbstractMapping[Gate, Requirement], saves: Sequence[Save], computation: Computation, values: Mapping
) -> None:
    """Refuse gates that cannot give a verdict and saves that do not make a chain."""
    if all(requirement is Requirement.OFF for requirement in gates.values()):
        values["gates"].place.refuse(f"has every gate off; accepted is at least one of {', '.join(Gate)} that is not")
    if "resume" not in values:
        if gates[Gate.RESUME] is not Requirement.OFF:
            values.place.refuse(
                "lacks the key 'resume', which names the saves of the resume gate; add it or set the gate off"
            )
        return
    place = values["resume"].place
    listed = [save.step for save in saves]
    for earlier, later in itertools.pairwise(listed):
        if later <= earlier:
            place.refuse(f"saves at steps {listed}; accepted are steps that ascend")
    last = computation.steps - STEPS_PAST_SAVE
    if listed and listed[-1] > last:
        place.refuse(
            f"saves at step {listed[-1]} of {computation.steps}; accepted is at most step {last}, two before the end"
        )
    if gates[Gate.RESUME] is not Requirement.OFF:
        if len(saves) < LEAST_RESTORES:
            place.refuse(
                f"has {len(saves)} saves; accepted are at least {LEAST_RESTORES}, since a chain restores twice"
            )
        for mode in SaveMode:
            if all(save.mode is not mode for save in saves):
                place.refuse(f"has no {mode} save; accepted is at least one save of either mode")


def check_waivers(policy: Policy, computation: Computation, items: Sequence[Item]) -> None:
    """Refuse a waiver about a place that the resume chain does not have."""
    for waiver, item in zip(policy.waivers, items, strict=True):
        sightings = item.mapping(["gate", "leaf", "seen", "reason", "link", "expires"])["seen"].items()
        if not sightings:
            item.place.refuse("is seen nowhere; accepted is at least one sighting under seen")
        for sighting, where in zip(waiver.seen, sightings, strict=True):
            _check_sighting(waiver, sighting, where, policy, computation)


def _check_sighting(waiver: Waiver, sighting: Sighting, item: Item, policy: Policy, computation: Computation) -> None:
    restores = [0, *(save.step for save in policy.saves)]
    if sighting.restore not in restores:
        accepted = f"0 (the fresh first segment) or a save's step out of {restores[1:]}"
        item.place.refuse(f"names restore {sighting.restore}; accepted is {accepted}")
    if sighting.ranks[-1] >= computation.world_size:
        item.place.refuse(f"names rank {sighting.ranks[-1]}; accepted are 0 to {computation.world_size - 1}")
    bounds = [moment for moment in (sighting.moments.first, sighting.moments.last) if moment is not None]
    for moment in bounds:
        at_restore = moment.phase is not Phase.STEP
        fits = moment.step == sighting.restore if at_restore else sighting.restore < moment.step <= computation.steps
        if not fits:
            here = f"setup:{sighting.restore}, entry:{sighting.restore} and steps after it to {computation.steps}"
            item.place.refuse(f"names {moment} after restore {sighting.restore}; accepted are {here}")
        if at_restore and waiver.group not in PERSISTENT_GROUPS:
            item.place.refuse(
                f"names {moment} for group {waiver.group}, which exists only from a step on; accepted is step:K"
            )
