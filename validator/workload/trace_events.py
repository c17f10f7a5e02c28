"""What a trace consists of: events with the digests of what went in and what came out, and where the code stands."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import Tensor

from validator.trajectory.leaves import LeafKey, leaf_digest
from validator.workload.digests import content_of, plain_torch
from validator.workload.state import Leaf, number

SCHEMA = "validator/trace"
VERSION = 1

#: Hexadecimal digits of a digest: 64 bits. They say where a difference begins, never whether there is one.
_DIGITS = 16

#: Stands for a tensor whose bytes cannot be read: of a meta device, of a subclass without memory of its own.
UNREADABLE = "unreadable"

Digests = dict[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """Where code stands: its class or function, its file relative to its package, and the line."""

    name: str = ""
    file: str = ""
    line: int = 0


@dataclass(slots=True, eq=False)
class Call:
    """One call that has been entered: of a module, or of a function that is looked at like one."""

    number: int
    module: str
    parent: Call | None
    micro_batch: int | None
    inputs: Digests = field(default_factory=dict)
    gradients: Digests = field(default_factory=dict)
    depth: int = 0

    def __post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1


class TraceWriter:
    """Collects one rank's events of one step, and writes them whole or not at all."""

    def __init__(self, step: int, rank: int, world_size: int) -> None:
        self._lines = [
            _line({"schema": SCHEMA, "version": VERSION, "step": step, "rank": rank, "world_size": world_size})
        ]
        self._numbers = itertools.count()
        self._known: set[str] = set()

    def event(
        self, phase: str, call: Call | None, inputs: Digests, outputs: Digests, *, name: str = "",
        micro_batch: int | None = None, module: str | None = None, source: Source | None = None,
        parent: Call | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """Write down one event. It is of ``call``'s module and micro-batch, within its parent, unless these are
        given.
        """
        parent = call.parent if parent is None and call is not None else parent
        entry: dict[str, Any] = {
            "event": next(self._numbers),
            "phase": phase,
            "micro_batch": call.micro_batch if call is not None and micro_batch is None else micro_batch,
            "module": call.module if call is not None and module is None else module or "",
            "name": name,
            "call": None if call is None else call.number,
            "parent": None if parent is None else parent.number,
            "inputs": inputs,
            "outputs": outputs,
            **more,
        }
        if source is not None:
            entry |= {"class": source.name, "file": source.file, "line": source.line}
        self._lines.append(_line(entry))

    def module(self, path: str, source: Callable[[], Source]) -> None:
        """Say what a module is, once, before its first event."""
        if path not in self._known:
            self._known.add(path)
            found = source()
            self._lines.append(_line({"module": path, "class": found.name, "file": found.file, "line": found.line}))

    def write(self, file: Path) -> None:
        """Write the trace, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(file.name + ".part")
        text = "".join([*self._lines, _line({"end": True, "events": next(self._numbers)})])
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":")) + "\n"


_keys: dict[tuple[torch.dtype, torch.Size], LeafKey] = {}


def digest(tensor: Tensor) -> str:
    """Digest of a tensor's bytes, bound to its dtype and shape, in hexadecimal."""
    with plain_torch():
        try:
            content = content_of(Leaf("", tensor))
        except (RuntimeError, NotImplementedError, TypeError):
            return UNREADABLE
        key = _keys.get((tensor.dtype, tensor.shape))
        if key is None:
            key = LeafKey("", str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
            _keys[tensor.dtype, tensor.shape] = key
        return leaf_digest(key, content).hex()[:_DIGITS]


def leaf(found: Leaf) -> str:
    """Digest of a leaf of the training state."""
    if isinstance(found.source, Tensor):
        return digest(found.source)
    return leaf_digest(LeafKey("", found.dtype or "bytes", (len(found.source),)), found.source).hex()[:_DIGITS]


def tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    """Every tensor in nested tuples, lists and mappings, under a name that says where it was."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from tensors(item, f"{name} {position}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tensors(item, f"{name} {key}")


def numbers(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Digests of plain numbers in nested tuples, lists and mappings: they can change what is computed."""
    if isinstance(value, (bool, int, float)):
        yield name, leaf(number("", value))
    elif isinstance(value, (tuple, list)):
        for position, item in enumerate(value):
            yield from numbers(item, f"{name} {position}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from numbers(item, f"{name} {key}")


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    return {f"input {position}": value for position, value in enumerate(args)} | {
        f"input {name}": value for name, value in kwargs.items()
    }


def digests(values: Mapping[str, Any]) -> Digests:
    """Digests of all tensors and numbers in a call's arguments or results."""
    found: Digests = {}
    for name, value in values.items():
        found.update((where, digest(tensor)) for where, tensor in tensors(value, name))
        found.update(numbers(value, name))
    return found


def source_of_class(kind: type, method: str = "forward") -> Source:
    """Where a class stands: the line of its own ``method``, else that of the class."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None) or ""
    code = getattr(inspect.unwrap(getattr(kind, method, kind)), "__code__", None)
    if code is not None and code.co_filename == file:
        line = code.co_firstlineno
    else:
        try:
            line = inspect.getsourcelines(kind)[1]
        except (OSError, TypeError):
            line = 0
    return Source(kind.__qualname__, package_file(kind.__module__, file), line)


def source_of_function(function: Callable[..., Any]) -> Source:
    """Where a function stands."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__qualname__", "")
    if code is None:
        return Source(name)
    return Source(name, package_file(str(plain.__module__), code.co_filename), code.co_firstlineno)


def source_of_caller(packages: tuple[str, ...]) -> Source:
    """The innermost line on the stack that belongs to one of the packages."""
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.split(".", maxsplit=1)[0] in packages and not module.startswith("validator.workload.trace"):
            return Source(frame.f_code.co_qualname, package_file(module, frame.f_code.co_filename), frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return Source()


def package_file(module: str, file: str) -> str:
    """``megatron/core/ssm/mamba_mixer.py``: a module's file below the folder that its package lies in."""
    depth = module.count(".") + 1 + (PurePath(file).stem == "__init__")
    return "/".join(PurePath(file).parts[-depth:]) if file else ""
