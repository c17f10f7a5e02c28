"""All contact with Megatron's internals, in one place.

Tried with megatron-core 0.19.0 and 0.19.2. Where another version lacks something, ``require`` says what, in one
sentence. Callers say ``megatron_internals.NAME``; the parts are ``versions``, ``binding``, ``loop``, ``functions``,
``state``, ``generators`` and ``measures``.
"""

from __future__ import annotations

from validator.workload.megatron_internals.binding import prepare
from validator.workload.megatron_internals.functions import (
    functions_outside_modules,
    replace_everywhere,
    replace_finalizer,
)
from validator.workload.megatron_internals.generators import (
    generator_states,
    random_tracker_states,
    set_generator_states,
    set_random_tracker_states,
    state_tensor,
)
from validator.workload.megatron_internals.loop import (
    Hooks,
    multi_token_prediction_here,
    next_batch,
    observe_checkpoints,
    observe_training,
    parse_arguments,
    pretrain,
    tokenizer,
    wrap_phases,
)
from validator.workload.megatron_internals.measures import (
    RouterLosses,
    coordinates,
    gather_objects,
    global_batch_size,
    learning_rate,
    micro_batches,
    multi_token_prediction_losses,
)
from validator.workload.megatron_internals.state import (
    OwnedShard,
    fp8_states,
    inner_optimizers,
    modules_of,
    owned_shards,
    plain_parts,
)
from validator.workload.megatron_internals.versions import TRIED_VERSIONS, require, version

__all__ = [
    "TRIED_VERSIONS",
    "Hooks",
    "OwnedShard",
    "RouterLosses",
    "coordinates",
    "fp8_states",
    "functions_outside_modules",
    "gather_objects",
    "generator_states",
    "global_batch_size",
    "inner_optimizers",
    "learning_rate",
    "micro_batches",
    "modules_of",
    "multi_token_prediction_here",
    "multi_token_prediction_losses",
    "next_batch",
    "observe_checkpoints",
    "observe_training",
    "owned_shards",
    "parse_arguments",
    "plain_parts",
    "prepare",
    "pretrain",
    "random_tracker_states",
    "replace_everywhere",
    "replace_finalizer",
    "require",
    "set_generator_states",
    "set_random_tracker_states",
    "state_tensor",
    "tokenizer",
    "version",
    "wrap_phases",
]
