"""Changes one bit of a tensor inside a saved ``torch_dist`` checkpoint, between the launch that saved it and the one
that restores it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from validator.execute.launch import LaunchOutcome, Surroundings
from validator.execute.local import LocalExecutor
from validator.execute.request import LaunchRequest
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey, leaf_digest
from validator.trajectory.reader import Trajectory


@dataclass(frozen=True)
class Tensor:
    """A tensor as a trajectory knows it: where it is, and the digest of its bytes."""

    rank: int
    key: LeafKey
    digest: bytes


def find_tensor(trajectory: Trajectory, moment: Moment, group: Group, name: str) -> Tensor:
    """The tensor of that name, which exactly one rank holds."""
    (found,) = [
        Tensor(rank, key, record.leaf(index))
        for rank in trajectory.ranks
        for record in [trajectory.leaves(rank, moment, group)]
        for index, key in enumerate(record.table.keys)
        if key.name == name
    ]
    return found


def flip_one_bit(checkpoint: Path, tensor: Tensor) -> None:
    """Flip the lowest bit of the first element of the tensor, found in the checkpoint by its bytes.

    A ``.distcp`` file is a row of PyTorch archives; the checkpoint's metadata says where each one begins and ends.
    """
    import torch  # seconds, which collecting the tests need not take
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    metadata = FileSystemReader(checkpoint).read_metadata()
    found = 0
    for index, place in metadata.storage_data.items():
        if not isinstance(metadata.state_dict_metadata[index.fqn], TensorStorageMetadata):
            continue
        with (checkpoint / place.relative_path).open("r+b") as file:
            file.seek(place.offset)
            archive = file.read(place.length)
            saved = torch.load(io.BytesIO(archive), weights_only=True)
            if saved.dtype != torch.float32 or not saved.is_contiguous():
                continue
            bits = saved.view(-1).view(torch.int32)
            if leaf_digest(tensor.key, bits.numpy().tobytes()) != tensor.digest:
                continue
            bits[0] ^= 1
            changed = io.BytesIO()
            torch.save(saved, changed)
            assert len(changed.getvalue()) == place.length
            file.seek(place.offset)
            file.write(changed.getvalue())
            found += 1
    assert found == 1, f"{tensor.key.name} is in the checkpoint {found} times"


@dataclass
class FlipsOneBit:
    """Launches as the product does, but flips the bit before the launch that restores ``step``; ``find`` is asked for
    the tensor then.
    """

    step: int
    find: Callable[[], Tensor]
    real: LocalExecutor = field(default_factory=LocalExecutor)
    flipped: int = 0
    rank: int | None = None

    def __getattr__(self, name: str) -> Any:
        """All else that an executor does, the real one does."""
        return getattr(self.real, name)

    def launch(self, request: LaunchRequest, surroundings: Surroundings, **options: Any) -> LaunchOutcome:
        """See ``Executor.launch``."""
        if request.restore_step == self.step:
            saved = Path(request.arguments[request.arguments.index("--load") + 1])
            tensor = self.find()
            flip_one_bit(saved / f"iter_{self.step:07d}", tensor)
            self.flipped, self.rank = self.flipped + 1, tensor.rank
        return self.real.launch(request, surroundings, **options)
