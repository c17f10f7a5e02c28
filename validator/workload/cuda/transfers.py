"""Lanes on their way from the device to the host: summed in one buffer a step, copied once, beside what computes."""

from __future__ import annotations

import torch
from torch import Tensor


class Slot:
    """One buffer of lanes, int64 [capacity, 2], and its copy on the host; used again once all rows are read.

    Rows are handed out until the buffer is sent. On a GPU the copy runs on a stream of its own, after all that was
    queued before it, and nothing waits for it until a row is read.
    """

    def __init__(self, device: torch.device, capacity: int) -> None:
        self.capacity = capacity
        self._on_gpu = device.type == "cuda"
        self._device = torch.zeros((capacity, 2), dtype=torch.int64, device=device)
        self._host = torch.zeros((capacity, 2), dtype=torch.int64, pin_memory=self._on_gpu)
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None
        self._event = torch.cuda.Event() if self._on_gpu else None
        self._used = 0
        self._unread = 0
        self._sent = False

    @property
    def room(self) -> int:
        """Rows that can still be handed out before the buffer is sent."""
        return 0 if self._sent else self.capacity - self._used

    @property
    def idle(self) -> bool:
        """Whether everything that was handed out has been read."""
        return self._unread == 0

    def take(self, rows: int) -> tuple[Tensor, slice]:
        """The next ``rows`` rows, all zero, and where they are."""
        where = slice(self._used, self._used + rows)
        self._used += rows
        self._unread += 1
        return self._device[where], where

    def send(self) -> None:
        """Begin the copy to the host; rows are no longer handed out."""
        if self._sent or not self._used:
            return
        self._sent = True
        if self._stream is None:
            self._host[: self._used].copy_(self._device[: self._used])
            return
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._host[: self._used].copy_(self._device[: self._used], non_blocking=True)
            self._event.record(self._stream)

    def read(self, where: slice) -> Tensor:
        """The rows at ``where`` on the host; waits for the copy. Each hand-out is read once."""
        self.send()
        if self._event is not None:
            self._event.synchronize()
        found = self._host[where].clone()
        self._unread -= 1
        if self.idle:
            self._device.zero_()
            self._used, self._sent = 0, False
        return found
