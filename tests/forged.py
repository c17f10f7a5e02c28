"""What code under test may leave in the place of what it should: any JSON, and above all what breaks things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

#: Values that have ended a reader in a traceback somewhere.
_BREAKING: tuple[Any, ...] = (
    float("inf"), float("nan"), 1e-300, 10**400, 2**60, -1, 0.5, True, None, "", "x" * 1000, "\ud800", [], {}, [[1]],
)  # fmt: skip

#: Any JSON value.
anything: st.SearchStrategy[Any] = st.sampled_from(_BREAKING) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def lines_like(lines: Sequence[Mapping[str, Any]]) -> st.SearchStrategy[list[Any]]:
    """Some of ``lines`` in any order; of at most one a value is another, and at most one is none of them."""
    changed = st.sampled_from(lines).flatmap(
        lambda line: st.tuples(st.sampled_from(list(line)), anything).map(lambda new: {**line, new[0]: new[1]})
    )
    some = st.lists(st.sampled_from(lines), max_size=6)
    return st.tuples(some, changed | anything, some).map(lambda parts: [*parts[0], parts[1], *parts[2]])
