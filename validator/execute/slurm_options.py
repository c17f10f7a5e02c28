"""What a person may say about the jobs of a check, and what the product decides itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from validator.errors import UsageError
from validator.report.text import printable

#: What the product decides about its jobs.
_OWNED = frozenset(
    {
        "array", "comment", "error", "export", "job_name", "nodes", "no_requeue", "ntasks", "ntasks_per_node",
        "open_mode", "output", "requeue", "signal", "time", "wrap",
    }
)  # fmt: skip

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """``tasks_per_node`` share a node's ranks; a job may wait ``queue_seconds``; ``others`` go to sbatch."""

    tasks_per_node: int = 1
    queue_seconds: int = 24 * 3600
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """From ``--slurm-option`` pairs. Raises ``UsageError``."""
        own: dict[str, int] = {}
        others = {}
        for name, value in given.items():
            if name in {"tasks_per_node", "queue_seconds"}:
                if not value.isdigit() or not int(value):
                    raise UsageError(f"--slurm-option {name}={value} is not accepted; give a whole number from 1.")
                own[name] = int(value)
            elif name in _OWNED or not _NAME.fullmatch(name) or "\n" in value:
                raise UsageError(
                    f"--slurm-option {name}={printable(value)} is not accepted: the product sets it itself, or it is "
                    "no option of sbatch; partition, account, qos, constraint, gres, mem and the like are."
                )
            else:
                others[name] = value
        return cls(**own, others=others)

    def check(self, ranks_per_node: int) -> None:
        """Raise ``UsageError`` where a node's ranks do not share out among its tasks."""
        if ranks_per_node % self.tasks_per_node:
            raise UsageError(
                f"{ranks_per_node} ranks of a node do not share out among {self.tasks_per_node} tasks; "
                "change --slurm-option tasks_per_node."
            )
