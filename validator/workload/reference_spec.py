"""A hybrid layer spec of Megatron's plain layers: no Transformer Engine, any device.

Named on the command line as ``--spec validator.workload.reference_spec reference_stack_spec``.
"""

from __future__ import annotations

from megatron.core.fusions.fused_bias_dropout import get_bias_dropout_add
from megatron.core.models.gpt.moe_module_specs import get_moe_module_spec
from megatron.core.models.hybrid.hybrid_block import HybridStack, HybridStackSubmodules
from megatron.core.ssm.mamba_layer import MambaLayer, MambaLayerSubmodules
from megatron.core.ssm.mamba_mixer import MambaMixer, MambaMixerSubmodules
from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
from megatron.core.transformer.attention import SelfAttention, SelfAttentionSubmodules
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.enums import AttnMaskType
from megatron.core.transformer.multi_token_prediction import (
    MultiTokenPredictionBlock,
    MultiTokenPredictionBlockSubmodules,
    MultiTokenPredictionLayer,
    MultiTokenPredictionLayerSubmodules,
)
from megatron.core.transformer.spec_utils import ModuleSpec
from megatron.core.transformer.transformer_layer import (
    MoETransformerLayer,
    TransformerLayer,
    TransformerLayerSubmodules,
)

from validator.workload.norm import RMSNorm

_mamba_layer = ModuleSpec(
    module=MambaLayer,
    submodules=MambaLayerSubmodules(
        norm=RMSNorm,
        mixer=ModuleSpec(
            module=MambaMixer,
            submodules=MambaMixerSubmodules(in_proj=ColumnParallelLinear, out_proj=RowParallelLinear),
        ),
        mamba_bda=get_bias_dropout_add,
    ),
)

_attention_layer = ModuleSpec(
    module=TransformerLayer,
    submodules=TransformerLayerSubmodules(
        input_layernorm=RMSNorm,
        self_attention=ModuleSpec(
            module=SelfAttention,
            params={"attn_mask_type": AttnMaskType.causal},
            submodules=SelfAttentionSubmodules(
                linear_qkv=ColumnParallelLinear,
                core_attention=DotProductAttention,
                linear_proj=RowParallelLinear,
            ),
        ),
        self_attn_bda=get_bias_dropout_add,
    ),
)

_moe_layer = ModuleSpec(
    module=MoETransformerLayer,
    submodules=TransformerLayerSubmodules(
        pre_mlp_layernorm=RMSNorm,
        # num_experts only has to be given: the layer takes the number from the configuration.
        mlp=get_moe_module_spec(use_te=False, num_experts=8, moe_grouped_gemm=False),
        mlp_bda=get_bias_dropout_add,
    ),
)

_mtp_block = ModuleSpec(
    module=MultiTokenPredictionBlock,
    submodules=MultiTokenPredictionBlockSubmodules(
        layer_specs=[
            ModuleSpec(
                module=MultiTokenPredictionLayer,
                submodules=MultiTokenPredictionLayerSubmodules(
                    enorm=RMSNorm,
                    hnorm=RMSNorm,
                    eh_proj=ColumnParallelLinear,
                    mtp_model_layer=None,
                    layer_norm=RMSNorm,
                ),
            )
        ]
    ),
)

reference_stack_spec = ModuleSpec(
    module=HybridStack,
    submodules=HybridStackSubmodules(
        mamba_layer=_mamba_layer,
        attention_layer=_attention_layer,
        moe_layer=_moe_layer,
        mtp_block_spec=_mtp_block,
    ),
)
