"""Real Megatron data: the generated corpus as an indexed dataset, and datasets read through ``GPTDataset``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from megatron.core import mpu
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder, get_bin_path, get_idx_path
from megatron.training import get_args
from megatron.training.utils import get_blend_and_blend_per_split, is_first_or_last_pipeline_stage

from validator.workload import megatron_internals
from validator.workload.corpus import documents


def write_corpus(corpus: Mapping[str, int], prefix: Path) -> None:
    """Write the corpus as ``prefix.bin`` and ``prefix.idx`` with Megatron's own builder (16-bit tokens below
    65,500).
    """
    import numpy

    prefix.parent.mkdir(parents=True, exist_ok=True)
    dtype = numpy.uint16 if corpus["vocabulary"] < 65500 else numpy.int32
    builder = IndexedDatasetBuilder(get_bin_path(str(prefix)), dtype=dtype)
    for tokens in documents(corpus):
        builder.add_document(torch.tensor(tokens, dtype=torch.int64), [len(tokens)])
    builder.finalize(get_idx_path(str(prefix)))


def is_dataset_built_on_rank(vp_stage: int | None = None) -> bool:
    """Whether this rank reads data: tensor rank 0 of the stages that embed tokens or compute a loss."""
    if mpu.get_tensor_model_parallel_rank() != 0:
        return False
    return bool(is_first_or_last_pipeline_stage(vp_stage)) or megatron_internals.multi_token_prediction_here(vp_stage)


def datasets_provider(samples: Sequence[int], vp_stage: int | None = None) -> tuple[Any, Any, Any]:
    """Training, validation and test datasets for ``pretrain``; ``samples`` holds how many of each are wanted."""
    args = get_args()
    blend, blend_per_split = get_blend_and_blend_per_split(args)
    config = GPTDatasetConfig(
        random_seed=args.seed,
        sequence_length=args.seq_length,
        blend=blend,
        blend_per_split=blend_per_split,
        split=args.split,
        num_dataset_builder_threads=args.num_dataset_builder_threads,
        path_to_cache=args.data_cache_path,
        mmap_bin_files=args.mmap_bin_files,
        tokenizer=megatron_internals.tokenizer(args),
        reset_position_ids=args.reset_position_ids,
        reset_attention_mask=args.reset_attention_mask,
        eod_mask_loss=args.eod_mask_loss,
        create_attention_mask=args.create_attention_mask_in_dataloader,
    )
    built = BlendedMegatronDatasetBuilder(
        GPTDataset, samples, partial(is_dataset_built_on_rank, vp_stage=vp_stage), config
    ).build()
    return built[0], built[1], built[2]


datasets_provider.is_distributed = True  # type: ignore[attr-defined]
