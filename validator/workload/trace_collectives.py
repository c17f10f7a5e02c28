"""Collectives and messages between ranks, blocking and asynchronous ones: what each rank put in and what it got."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from validator.workload import megatron_internals
from validator.workload.trace_events import Call, Digests, TraceWriter, digest, source_of_caller, tensors

_distributed = torch.distributed

#: Parameters of each function that it reads, and that it writes. A broadcast reads on its source only.
_READS_WRITES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "all_reduce": (("tensor",), ("tensor",)),
    "reduce": (("tensor",), ("tensor",)),
    "broadcast": (("tensor",), ("tensor",)),
    "all_gather": (("tensor",), ("tensor_list",)),
    "all_gather_into_tensor": (("input_tensor",), ("output_tensor",)),
    "_all_gather_base": (("input_tensor",), ("output_tensor",)),
    "reduce_scatter": (("input_list",), ("output",)),
    "reduce_scatter_tensor": (("input",), ("output",)),
    "_reduce_scatter_base": (("input",), ("output",)),
    "all_to_all_single": (("input",), ("output",)),
    "all_to_all": (("input_tensor_list",), ("output_tensor_list",)),
    "gather": (("tensor",), ("gather_list",)),
    "scatter": (("scatter_list",), ("tensor",)),
    "send": (("tensor",), ()),
    "isend": (("tensor",), ()),
    "recv": ((), ("tensor",)),
    "irecv": ((), ("tensor",)),
}

#: From one rank to another.
_MESSAGES = frozenset({"send", "isend", "recv", "irecv"})


class _Work:
    """A handle of an asynchronous collective: its output is read when it has been waited for."""

    def __init__(self, work: Any, done: Callable[[], None]) -> None:
        self._work = work
        self._done = done

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        result = self._work.wait(*args, **kwargs)
        self._done()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


class Collectives:
    """Stands in for the functions of ``torch.distributed`` wherever Megatron calls them, for one step."""

    def __init__(self, writer: TraceWriter, rank: int, current: Callable[[], Call | None]) -> None:
        self._writer = writer
        self._rank = rank
        self._current = current
        self._undo: list[Callable[[], None]] = []
        self._coalesced: list[Callable[[], None]] | None = None
        self._unfinished: list[Callable[[], None]] = []
        self._counts: dict[str, int] = {}
        self._within = False

    def install(self) -> None:
        """Put the stand-ins in place."""
        for name in _READS_WRITES:
            if (function := getattr(_distributed, name, None)) is not None:
                self._undo.append(megatron_internals.replace_everywhere(function, self._observed(name, function)))
        batch = _distributed.batch_isend_irecv
        self._undo.append(megatron_internals.replace_everywhere(batch, self._observed_batch(batch)))
        manager = _distributed._coalescing_manager
        self._undo.append(megatron_internals.replace_everywhere(manager, self._observed_manager(manager)))

    def remove(self) -> None:
        """Take the stand-ins away, and write down what nobody has waited for."""
        for undo in reversed(self._undo):
            undo()
        for finish in list(self._unfinished):
            finish()

    def _observed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(inspect.unwrap(function))

        @functools.wraps(function)
        def observed(*args: Any, **kwargs: Any) -> Any:
            if self._within:
                return function(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            given |= given.get("kwargs", {})
            if len(self._ranks(given.get("group"))) == 1:  # nothing comes from anywhere
                return function(*args, **kwargs)
            done = self._begin(name, given)
            self._within = True
            try:
                work = function(*args, **kwargs)
            finally:
                self._within = False
            if self._coalesced is not None:
                self._coalesced.append(done)
            elif work is not None and (given.get("async_op") or name in ("isend", "irecv")):
                return _Work(work, self._later(done))
            else:
                done()
            return work

        return observed

    def _observed_batch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def observed(operations: Any, *args: Any, **kwargs: Any) -> Any:
            if self._within:
                return function(operations, *args, **kwargs)
            begun = []
            for one in operations:
                name = "isend" if one.op.__name__ == "isend" else "irecv"
                key = "dst" if name == "isend" else "src"
                begun.append(self._begin(name, {"tensor": one.tensor, "group": one.group, key: one.peer}))
            self._within = True
            try:
                works = function(operations, *args, **kwargs)
            finally:
                self._within = False
            # One work may stand for all of them.
            if len(works) == len(begun):
                return [_Work(work, self._later(done)) for work, done in zip(works, begun, strict=True)]
            every = [self._later(done) for done in begun]

            def all_done() -> None:
                for done in every:
                    done()

            return [*works[:-1], _Work(works[-1], all_done)] if works else works

        return observed

    def _observed_manager(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @contextlib.contextmanager
        def observed(*args: Any, **kwargs: Any) -> Iterator[Any]:
            asynchronous = bool(kwargs.get("async_ops", args[2] if len(args) > 2 else False))
            outer, self._coalesced = self._coalesced, []
            begun = self._coalesced
            within, self._within = self._within, False
            try:
                with function(*args, **kwargs) as manager:
                    yield manager
            finally:
                self._coalesced, self._within = outer, within
            if not asynchronous:
                for done in begun:
                    done()
                return
            later = [self._later(done) for done in begun]
            wait = manager.wait

            def waited() -> None:
                wait()
                for done in later:
                    done()

            manager.wait = waited

        return observed

    def _later(self, done: Callable[[], None]) -> Callable[[], None]:
        def once() -> None:
            if finish in self._unfinished:
                self._unfinished.remove(finish)
                done()

        finish = once
        self._unfinished.append(finish)
        return once

    def _begin(self, name: str, given: Mapping[str, Any]) -> Callable[[], None]:
        """Read what goes in; returns what reads what came out, and writes the event."""
        reads, writes = _READS_WRITES[name]
        ranks = self._ranks(given.get("group"))
        more: dict[str, Any] = {"ranks": ranks}
        if name in ("send", "isend"):
            more = {"ranks": [self._rank, self._peer(given, "dst")]}
        elif name in ("recv", "irecv"):
            more = {"ranks": [self._peer(given, "src"), self._rank]}
        # Which one it is between these ranks: by this the ranks' events are told to be the same collective.
        kind = "message" if name in _MESSAGES else name
        key = f"{kind} {more['ranks']}"
        more["nth"] = self._counts[key] = self._counts.get(key, -1) + 1
        more["kind"] = kind
        call = self._current()
        source = source_of_caller(("megatron", "transformer_engine", "validator"))
        silent = name in ("broadcast", "scatter") and not self._is_source(given)
        inputs: Digests = {} if silent else _digests(given, reads)

        def done() -> None:
            self._writer.event(
                "collective", None, inputs, _digests(given, writes), name=name,
                module="" if call is None else call.module, micro_batch=None if call is None else call.micro_batch,
                source=source, parent=call, **more,
            )  # fmt: skip

        return done

    def _ranks(self, group: Any) -> list[int]:
        group = group if group is not None else _distributed.group.WORLD
        return list(_distributed.get_process_group_ranks(group))

    def _peer(self, given: Mapping[str, Any], key: str) -> int:
        if given.get(key) is not None:
            return int(given[key])
        inside = given.get(f"group_{key}")
        return self._ranks(given.get("group"))[int(inside)] if inside is not None else -1

    def _is_source(self, given: Mapping[str, Any]) -> bool:
        if given.get("group_src") is not None:
            return self._ranks(given.get("group"))[int(given["group_src"])] == self._rank
        return int(given.get("src") or 0) == self._rank


def _digests(given: Mapping[str, Any], names: tuple[str, ...]) -> Digests:
    values = {name: given[name] for name in names if given.get(name) is not None}
    return {where: digest(tensor) for name, value in values.items() for where, tensor in tensors(value, name)}
