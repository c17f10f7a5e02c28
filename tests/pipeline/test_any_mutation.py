"""Whatever is done to a valid file, it loads or is refused with one sentence."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.pipeline.samples import VALID, write
from validator.errors import UsageError
from validator.pipeline import load_pipeline


def loads_or_is_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            load_pipeline(write(Path(folder), text), Path(folder))
        except UsageError as error:
            message = str(error)
            assert message.startswith(f"{Path(folder) / 'small.yaml'}:")
            assert message.endswith(".")
            assert "\n" not in message
            assert len(message) < 600


@settings(deadline=None)
@given(
    at=st.integers(0, len(VALID)),
    removed=st.integers(0, 40),
    inserted=st.text(
        st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(list(":-{}[]|>&*!#'\"\n ,0"))), max_size=12
    ),
)
@example(at=0, removed=40, inserted="&a [*a]: ")
def test_edits_of_the_text(at: int, removed: int, inserted: str) -> None:
    loads_or_is_refused(VALID[:at] + inserted + VALID[at + removed :])


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.dates(), st.text(max_size=8), st.binary(max_size=4)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def _paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, item in inner for deeper in _paths(item, (*path, key)))]


@settings(deadline=None)
@given(
    path=st.sampled_from(_paths(yaml.safe_load(VALID))[1:]),
    value=values,
    action=st.sampled_from(["set", "delete", "add"]),
)
def test_edits_of_the_content(path: tuple[object, ...], value: object, action: str) -> None:
    document = yaml.safe_load(VALID)
    *parents, last = path
    holder = document
    for key in parents:
        holder = holder[key]
    if action == "set":
        holder[last] = value
    elif action == "delete":
        del holder[last]
    elif isinstance(holder, dict):
        holder[f"{last}x"] = value
    else:
        holder.append(value)
    with contextlib.suppress(yaml.YAMLError):
        loads_or_is_refused(yaml.safe_dump(document, allow_unicode=True))
