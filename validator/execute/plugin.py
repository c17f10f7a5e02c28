"""A person's own Python file for inside every launch (``--plugin``): what can be refused before anything starts.

Standard library only, like all that a launch loads.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from validator.errors import UsageError

#: The folder of the kit that holds the file, under its own name; ``validator.workload.plugins`` looks for it there.
FOLDER = "validator_plugin"

#: What the file has to define, and what it is called with.
ENTRY = "install"

_FORM = f"--plugin takes a Python file that defines {ENTRY}(launch)"


@dataclass(frozen=True, slots=True)
class Plugin:
    """The file as it was read once: later changes to it have no part in the run."""

    file: Path
    content: bytes

    @classmethod
    def read(cls, file: Path) -> Self:
        """Raises ``UsageError`` where there is no such file, where it is no Python, or defines no ``install``."""
        try:
            content = file.expanduser().read_bytes()
        except OSError as error:
            raise UsageError(f"{str(file)!r} cannot be read ({error.strerror}); {_FORM}.") from None
        try:
            tree = ast.parse(content, str(file))
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno else ""
            raise UsageError(f"{str(file)!r}{line} is no Python ({error.msg}); {_FORM}.") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise UsageError(f"{str(file)!r} is no Python ({error}); {_FORM}.") from None
        _insist_on_entry(file, tree)
        return cls(file, content)

    @property
    def digest(self) -> str:
        """SHA-256 of the content, hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def stamp(self) -> str:
        """Why a run with it can be neither approved nor published."""
        return f"--plugin {self.file.name} (SHA-256 {self.digest[:12]})"

    def put_into(self, kit: Path) -> None:
        """Copy it beside ``kit`` and link it there, as all that a launch gets from us is linked."""
        folder = kit.with_name(f"{kit.name}-plugin")
        folder.mkdir(exist_ok=True)
        copy = folder / self.file.name
        copy.write_bytes(self.content)
        folder.chmod(0o755)  # inside an image another user reads it
        copy.chmod(0o644)
        link = kit / FOLDER
        if not link.is_symlink():
            link.symlink_to(folder.resolve(), target_is_directory=True)


def _insist_on_entry(file: Path, tree: ast.Module) -> None:
    """The last definition of ``install`` at the top of the file counts; an imported or assigned one is taken on
    trust.
    """
    for node in reversed(tree.body):
        if isinstance(node, ast.AsyncFunctionDef) and node.name == ENTRY:
            raise UsageError(f"{str(file)!r}, line {node.lineno}: {ENTRY} is asynchronous; {_FORM}.")
        if isinstance(node, ast.FunctionDef) and node.name == ENTRY:
            given = node.args
            positional = len(given.posonlyargs) + len(given.args)
            required = positional - len(given.defaults) + sum(default is None for default in given.kw_defaults)
            if required > 1 or (not positional and given.vararg is None):
                raise UsageError(f"{str(file)!r}, line {node.lineno}: {ENTRY} does not take one argument; {_FORM}.")
            return
    if not any(_binds(node) for top in tree.body for node in ast.walk(top)):
        raise UsageError(f"{str(file)!r} defines no {ENTRY}; {_FORM}.")


def _binds(node: ast.AST) -> bool:
    """Whether this is some other way of giving the name a value."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == ENTRY
    if isinstance(node, ast.Name):
        return node.id == ENTRY and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.FunctionDef) and node.name == ENTRY
