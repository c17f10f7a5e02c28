"""What the catalogue says of a fault. Read on the host's side as well: nothing here needs torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

#: The step at which a fault acts that acts at one step, and the one whose save and restore are spoilt. A step before
#: it and several after it are trained, so that what goes before stays equal and what follows is seen.
STEP = 3


#: Where a difference within the forward pass shows first: the router losses are the first numbers that a step hands on.
ROUTER_LOSS = "seq_load_balancing_loss.layer*"


class Category(StrEnum):
    """What kind of public defect a fault is modelled on."""

    RNG = "rng"
    DATA_POSITION = "data position"
    OPTIMIZER = "optimizer"
    PARAMETERS = "parameters and buffers"
    SAVING = "checkpoint writing"
    REDUCTION_ORDER = "reduction order"
    ROUTING = "routing"
    LOSSES = "losses"
    HIDDEN_BITS = "bits that values hide"
    ENVIRONMENT = "environment"
    RARE = "rare"
    RECORDER = "recorder"
    MACHINERY = "machinery"


class Scenario(StrEnum):
    """Which launches show a fault, and with which gate."""

    RUN = "golden"  # one uninterrupted launch differs from the clean one
    SAVE = "resume"  # what it saves restores to another state: two launches
    RESTORE = "resume after a clean save"  # a clean save restores to another state: one launch
    REPEAT = "repeatability"  # two launches of it differ from each other
    RARE = "repeatability of several launches"  # some of several launches differ
    PROOF = "recorder"  # the launch ends, and its recorder is found to be blind
    BREAKDOWN = "launch"  # the launch does not come to its end


@dataclass(frozen=True, slots=True)
class Place:
    """The first divergence that a fault must be named by. ``leaf`` may hold ``*``; ``ranks`` empty: any rank."""

    moment: str
    group: str
    leaf: str = "*"
    ranks: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.moment} {self.group}/{self.leaf}"

    def covers(self, moment: str, rank: int | None, group: str, leaf: str) -> bool:
        """Whether a divergence found there is this one."""
        here = (moment, group) == (self.moment, self.group) and fnmatchcase(leaf, self.leaf)
        return here and (not self.ranks or rank in self.ranks)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what it does, what it is modelled on, how it must be caught and named, and how it is installed.

    ``install`` is called on every rank of a launch whose recorder is its argument. ``module`` is where localisation
    must end (``*`` allowed), empty where no module is the cause. ``needs`` are Megatron arguments without which the
    fault cannot happen. ``variables`` are set for the launch. ``mode`` is how a ``SAVE`` fault's launch saves.
    ``logged_only``: only what is logged is wrong, and training goes on with equal bits. ``probability`` and
    ``launches`` are a ``RARE`` fault's.
    """

    name: str
    category: Category
    does: str
    source: str
    scenario: Scenario
    expected: Place | None = None
    install: Callable[[Any], None] = lambda _: None
    module: str = ""
    needs: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    mode: str = "synchronous"
    logged_only: bool = False
    quick: bool = False
    probability: float = 1.0
    launches: int = 1

    @property
    def gate(self) -> str:
        """The gate that must catch it."""
        return self.scenario.value.split(" ")[0]
