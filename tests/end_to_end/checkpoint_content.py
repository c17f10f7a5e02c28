"""Prints what a ``torch_dist`` checkpoint holds, as JSON: name of each shard -> its dtype, shape and SHA-256, or for
what is no tensor the SHA-256 over its parts. A program of its own, since reading imports Megatron's classes.

    python checkpoint_content.py CHECKPOINT LAUNCH_FOLDER

``LAUNCH_FOLDER`` is left out of the resolved arguments, where it names places.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def parts(value: Any, folder: str) -> Iterator[bytes]:
    """The bytes of everything inside: tensors and arrays raw, containers in order, the rest by representation."""
    import numpy
    import torch

    if isinstance(value, torch.Tensor):
        yield f"tensor {value.dtype} {tuple(value.shape)} ".encode()
        yield value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
    elif isinstance(value, numpy.ndarray):
        yield f"array {value.dtype} {value.shape} ".encode() + value.tobytes()
    elif isinstance(value, Namespace):
        yield from parts(vars(value), folder)
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield f"{key!r}: ".encode()
            yield from parts(value[key], folder)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} of {len(value)} ".encode()
        for item in value:
            yield from parts(item, folder)
    elif isinstance(value, io.BytesIO):
        yield value.getvalue()
    else:
        yield repr(value).replace(folder, "FOLDER").encode() + b"\n"


def content(checkpoint: Path, folder: str) -> dict[str, str]:
    """Every entry of the checkpoint, by its name and offset within the whole tensor."""
    import torch
    from torch.distributed.checkpoint import FileSystemReader

    found = {}
    for index, place in FileSystemReader(checkpoint).read_metadata().storage_data.items():
        with (checkpoint / place.relative_path).open("rb") as file:
            file.seek(place.offset)
            value = torch.load(io.BytesIO(file.read(place.length)), weights_only=False)
        digest = hashlib.sha256(b"".join(parts(value, folder))).hexdigest()
        kind = f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else "object"
        found[f"{index.fqn} @ {index.offset}"] = f"{kind} {digest}"
    return found


if __name__ == "__main__":
    print(json.dumps(content(Path(sys.argv[1]), sys.argv[2])))
