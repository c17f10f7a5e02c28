"""The spread of a divergence as a table: state groups down, moments across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from validator.report.model import SpreadRow

#: Stands in the header for moments that are left out.
ELLIPSIS = "…"

#: Stands in a cell where nothing differs.
NOTHING = "·"


@dataclass(frozen=True, slots=True)
class SpreadTable:
    """``cells[group][moment]`` is ``differing/leaves``; ``ranks[moment]`` the most ranks that differ in any group."""

    groups: tuple[str, ...]
    moments: tuple[str, ...]
    cells: Mapping[str, Mapping[str, str]]
    ranks: Mapping[str, int]

    @classmethod
    def of(cls, rows: Sequence[SpreadRow]) -> Self:
        """Groups and moments in the order in which ``rows`` first name them."""
        cells: dict[str, dict[str, str]] = {}
        ranks: dict[str, int] = {}
        for row in rows:
            cells.setdefault(row.group, {})[row.moment] = f"{row.differing}/{row.leaves}"
            ranks[row.moment] = max(ranks.get(row.moment, 0), row.ranks)
        return cls(tuple(cells), tuple(ranks), cells, ranks)

    def lines(self, most_moments: int) -> tuple[tuple[str, ...], ...]:
        """Header, one line a group, and the ranks; of more than ``most_moments`` (≥ 2) the first ones and the last."""
        shown = self._shown(max(2, most_moments))
        body = ((group, *(self._cell(group, moment) for moment in shown)) for group in self.groups)
        ranks = ("ranks", *("" if moment == ELLIPSIS else str(self.ranks[moment]) for moment in shown))
        return (("", *shown), *body, ranks)

    def _shown(self, most: int) -> tuple[str, ...]:
        if len(self.moments) <= most:
            return self.moments
        return (*self.moments[: most - 1], ELLIPSIS, self.moments[-1])

    def _cell(self, group: str, moment: str) -> str:
        return "" if moment == ELLIPSIS else self.cells[group].get(moment, NOTHING)
