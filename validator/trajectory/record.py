"""What one rank says about one group at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from validator.trajectory.leaves import DIGEST_BYTES, XXH3, Algorithm, LeafKey, LeafTable, fold_group
from validator.trajectory.metrics import Metric


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The leaves of one group: ``digests`` holds 16 bytes for each key of ``table``, in the table's order.

    Raises ``ValueError`` where the two do not fit.
    """

    table: LeafTable
    digests: bytes

    def __post_init__(self) -> None:
        if len(self.digests) != DIGEST_BYTES * len(self.table):
            raise ValueError(
                f"{len(self.digests)} bytes of digests for {len(self.table)} leaves; each leaf has {DIGEST_BYTES} bytes"
            )

    @property
    def digest(self) -> bytes:
        """The group's digest, folded from its leaves."""
        return fold_group(self.table, self.digests)

    def leaf(self, index: int) -> bytes:
        """Digest of the leaf at ``index``: 16 bytes."""
        return self.digests[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]


def metric_record(metrics: Mapping[str, Metric], table: LeafTable, algorithm: Algorithm = XXH3) -> GroupRecord:
    """The ``metrics`` group: one leaf a metric, over the little-endian bytes of its bits; ``table`` is its table."""
    contents = (bytes.fromhex(metric.bits)[::-1] for metric in metrics.values())
    return GroupRecord(table, b"".join(map(algorithm.hash, contents, (key.seed for key in table.keys))))


def metric_table(metrics: Mapping[str, Metric]) -> LeafTable:
    """The leaf table of the ``metrics`` group, in the metrics' order."""
    return LeafTable(tuple(LeafKey(name, metric.dtype, ()) for name, metric in metrics.items()))
