"""The map as a table of the page, and as the data that the page's script opens it with."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from validator.report.html.elements import Html, join, tag, text
from validator.report.html.map import Column, Map
from validator.report.html.states import State
from validator.report.html.tensors import Cell, Shelf
from validator.report.html.words import CLASSES, MEANINGS, SIGNS, STATES, moment_sign
from validator.report.text import counted, printable
from validator.report.words import moment_in_words

#: Beyond this many columns their heads stand upright.
_WIDE = 28


def view(drawn: Map) -> Html:
    """The map: one row a state group, one column a moment; its ranks and tensors open from the page's data."""
    strips = [(name, len(list(members))) for name, members in groupby(drawn.columns, key=lambda each: each.strip)]
    heads = []
    if len(strips) > 1:
        names = (tag("th", text(name), scope="colgroup", colspan=width) for name, width in strips)
        heads.append(tag("tr", tag("td"), *names))
    begins, start = _begins(drawn), drawn.start
    signs = (
        tag("th", tag("span", text(_sign(column)), title=column_in_words(column)), scope="col", class_=begins[at])
        for at, column in enumerate(drawn.columns)
    )
    heads.append(tag("tr", tag("th", text("state group"), scope="col"), *signs))
    rows = [_row(drawn, group, begins, start) for group in range(len(drawn.groups))]
    label = f"{drawn.title}, the map"
    table = tag(
        "table", tag("thead", *heads), tag("tbody", *rows), class_="map tall" if len(drawn.columns) > _WIDE else "map",
        data_map=drawn.identity, aria_label=label,
    )  # fmt: skip
    panel = tag(
        "div", tag("p", text("Choose a cell to see its tensors."), class_="quiet"), class_="panel",
        data_panel=drawn.identity, aria_live="polite",
    )  # fmt: skip
    scroll = tag("div", table, class_="scroll", role="group", aria_label=label, tabindex="0")
    return join([tag("p", text(_caption(drawn)), class_="quiet"), scroll, panel])


def legend() -> Html:
    """What the colours and signs mean."""
    items = (
        tag(
            "li",
            tag("span", text(SIGNS[state]), class_=f"swatch {CLASSES[state]}", aria_hidden="true"),
            tag("b", text(STATES[state])),
            text(f" {MEANINGS[state]}"),
        )
        for state in (State.EQUAL, State.DIFFERENT, State.WAIVED, State.UNEXERCISED, State.ABSENT)
    )
    return tag("ul", *items, class_="legend")


def data(drawn: Map) -> dict[str, Any]:
    """What the script needs: per group and row a string of state letters, one a column, and the cells behind."""
    return {
        "title": drawn.title,
        "expected": drawn.expected,
        "columns": [column_in_words(column) for column in drawn.columns],
        "rows": [[row.ranks, row.count] for row in drawn.rows],
        "groups": [str(group) for group in drawn.groups],
        "states": [
            ["".join(CLASSES[State(int(each))] for each in line) for line in drawn.states[:, :, group]]
            for group in range(len(drawn.groups))
        ],
        "cells": {",".join(map(str, place)): _cell(cell) for place, cell in drawn.cells.items()},
    }


def shelf_data(shelf: Shelf) -> list[list[str]]:
    """Names and forms of all tensors, by number."""
    return [[printable(name), printable(form)] for name, form in shelf.leaves]


def column_in_words(column: Column) -> str:
    """``step 3``, ``steps 4 to 200``, ``right after the restore of step 3``."""
    if column.count == 1 or not column.first.startswith("step:"):
        return moment_in_words(column.first)
    return f"steps {column.first.partition(':')[2]} to {column.last.partition(':')[2]}"


def _cell(cell: Cell) -> list[Any]:
    tensors = [[each.leaf, each.kind, each.expected, each.observed, printable(each.note)] for each in cell.tensors]
    return [moment_in_words(cell.moment), cell.rank, cell.differing, cell.leaves, tensors]


def _row(drawn: Map, group: int, begins: list[str], start: tuple[int, int]) -> Html:
    name = str(drawn.groups[group])
    toggle = tag(
        "button", text(name), type="button", class_="unfold", data_group=group, aria_expanded="false",
        title=f"Show the ranks of {name}",
    )  # fmt: skip
    worst = [State(int(each)) for each in drawn.worst(group)]
    cells = (
        tag(
            "td",
            tag(
                "button", text(SIGNS[state]), type="button", class_="go",
                tabindex="0" if (group, at) == start else "-1", data_group=group, data_column=at,
                aria_label=f"{name}, {column_in_words(drawn.columns[at])}: {STATES[state]}",
            ),
            class_=f"{CLASSES[state]} {begins[at]}".rstrip(),
        )
        for at, state in enumerate(worst)
    )  # fmt: skip
    return tag("tr", tag("th", toggle, scope="row"), *cells)


def _begins(drawn: Map) -> list[str]:
    """``begin`` for each column at which another launch begins, else empty."""
    names = [column.strip for column in drawn.columns]
    return ["begin" if at and names[at - 1] != name else "" for at, name in enumerate(names)]


def _sign(column: Column) -> str:
    first, last = moment_sign(column.first), moment_sign(column.last)
    return first if column.count == 1 else f"{first}–{last}"


def _caption(drawn: Map) -> str:
    size = f"{counted(len(drawn.groups), 'state group')}, {counted(drawn.moments, 'moment')}, "
    size += counted(drawn.ranks, "rank")
    counts = ", ".join(
        f"{drawn.count(state)} {STATES[state]}"
        for state in (State.DIFFERENT, State.WAIVED, State.EQUAL, State.UNEXERCISED)
        if drawn.count(state)
    )
    folded = " Ranks and moments are folded: a cell shows the worst that it holds." if drawn.folded else ""
    return f"{drawn.observed} against {drawn.expected}: {size}. Cells: {counts}.{folded}"
