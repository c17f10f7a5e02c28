"""Sums whose order is not fixed."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder


def by_time(recorder: Recorder) -> None:
    """Split every reduced gradient into three addends and sum them in an order taken from the clock.

    This is what atomic additions do in a backward pass that is not deterministic: the addends are right, their order
    is not fixed, and the sum's last bits follow the order.
    """
    from validator.workload import megatron_internals

    orders = list(itertools.permutations(range(3)))

    def reorder() -> None:
        for _, shard in recorder.state.shards():
            gradient = shard.gradient
            first = gradient * 0.3
            second = gradient * 0.45
            addends = (first, second, gradient - first - second)
            order = orders[time.perf_counter_ns() // 100 % len(orders)]
            gradient.copy_(addends[order[0]] + addends[order[1]] + addends[order[2]])

    megatron_internals.observe_training(megatron_internals.Hooks(before_update=reorder))
