"""One forward step of the hybrid model, as ``pretrain`` calls it: batch, model, loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from validator.workload import megatron_internals

#: Called with each micro-batch as the forward pass is given it, and with its loss as the loss function reports it.
_batch_observers: list[Callable[[dict[str, Tensor | None]], None]] = []
_loss_observers: list[Callable[[Tensor], None]] = []


def observe(on_batch: Callable[[dict[str, Tensor | None]], None], on_loss: Callable[[Tensor], None]) -> None:
    """Let the recorder see every micro-batch's tensors and its (loss sum, token count), a float32 tensor of shape
    [2].
    """
    _batch_observers.append(on_batch)
    _loss_observers.append(on_loss)


def loss_function(loss_mask: Tensor, output: Tensor, model: Any = None) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Language-model loss of one micro-batch: its sum, the number of tokens, and both for the log.

    ``output``: per-token losses [batch, sequence]; ``loss_mask``: the same shape, 1 where a token counts.
    """
    losses = output.view(-1).float()
    mask = loss_mask.view(-1).float()
    loss = torch.sum(losses * mask)
    tokens = mask.sum().clone().detach().to(torch.int)
    report = torch.cat([loss.clone().detach().view(1), tokens.view(1)])
    for observer in _loss_observers:
        observer(report)
    return loss, tokens, {"lm loss": report}


def forward_step(data_iterator: Iterator[Any], model: Any) -> tuple[Tensor, Any]:
    """Run the model on the next micro-batch; returns its output and the loss function to apply to it."""
    batch = megatron_internals.next_batch(data_iterator, model)
    for observer in _batch_observers:
        observer(batch)
    output = model(
        batch["tokens"],
        batch["position_ids"],
        batch["attention_mask"],
        labels=batch["labels"],
        loss_mask=batch["loss_mask"],
    )
    return output, partial(loss_function, batch["loss_mask"])
