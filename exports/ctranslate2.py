"""Export to CTranslate2's format (Klein et al. 2020), a C++ library that translates on CPUs and NVIDIA GPUs.

Where CTranslate2 lacks a layer, other arithmetic gives the same numbers: a general score qᵀWk is a dot product with W
folded into the projection of q; values of another width than keys are padded with zeros; ALiBi is a T5 bias with a
bucket for each distance.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from ctranslate2.specs import transformer_spec
from ctranslate2.specs.common_spec import Activation
from jaxtyping import Float

from common.special_tokens import BOS, EOS, UNK
from exports.heads import LONGEST, Linear, dense, join_heads, position_table, scale_of, split_heads
from model.config import POSITIONS, ModelConfig
from model.positions import FARTHEST, alibi_bias
from model.transformer import Params

ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELUTanh, "silu": Activation.SWISH}


def find_obstacle(config: ModelConfig) -> str:
    """Why CTranslate2 cannot compute this model; empty if it can."""
    if config.activation not in ACTIVATIONS:
        return f"CTranslate2 has no model.activation={config.activation}, only {', '.join(ACTIVATIONS)}"
    match config.score:
        case "additive":
            return "CTranslate2 has no model.score=additive, only dot products and what they can express"
        case "general":
            rotates = POSITIONS[config.positions] == "queries and keys"
            return f"CTranslate2 has no model.score=general with model.positions={config.positions}" if rotates else ""
        case "scaled_dot_product" | "dot_product":
            return ""
        case _:
            raise NotImplementedError(f"model.score={config.score}")


def save_model(folder: Path, config: ModelConfig, params: Params, pieces: Sequence[str], quantization: str) -> None:
    """Write ``model.bin``, ``config.json`` and ``shared_vocabulary.json`` to an existing folder.

    ``pieces`` are the pieces of the vocabulary; ``quantization`` is a name that CTranslate2 knows.
    """
    spec = make_spec(config, params)
    spec.register_source_vocabulary(list(pieces))
    spec.register_target_vocabulary(list(pieces))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (pieces[id] for id in (UNK, BOS, EOS))
    spec.config.decoder_start_token = pieces[BOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-6
    spec.validate()
    spec.optimize(None if quantization == "float32" else quantization)
    spec.save(str(folder))


def make_spec(config: ModelConfig, params: Params) -> transformer_spec.TransformerSpec:
    """The whole model as a CTranslate2 specification."""
    acts = POSITIONS[config.positions]
    options: dict[str, Any] = {
        "num_heads": config.num_heads,
        "num_heads_kv": config.groups,
        "head_dim": max(config.head_dim, config.value_width),
        "pre_norm": config.final_norm,
        "activation": ACTIVATIONS[config.activation],
        "ffn_glu": config.gated,
        "relative_attention_bias": acts == "bias on scores",
        "rotary_dim": config.head_dim if acts == "queries and keys" else None,
        "rotary_interleave": False,
    }
    encoder = transformer_spec.TransformerEncoderSpec(config.encoder_layers, **options)
    decoder = transformer_spec.TransformerDecoderSpec(config.decoder_layers, **options)
    table = own(params["embedding"]["table"])
    encoder.embeddings[0].weight = decoder.embeddings.weight = decoder.projection.weight = table
    for number, (name, stack) in enumerate((("encoder", encoder), ("decoder", decoder))):
        set_positions(stack, config, params, causal=name == "decoder")
        for index, layer in enumerate(stack.layer):
            set_layer(layer, config, params[name][index])
        if config.final_norm:
            set_norm(stack.layer_norm, params["final_norms"][number])
    return transformer_spec.TransformerSpec(encoder, decoder)


def set_layer(layer: Any, config: ModelConfig, params: Params) -> None:
    """Self-attention, encoder-decoder attention in the decoder, and the feed-forward network."""
    is_decoder = "cross_attention" in params
    parts = [layer.self_attention, *([layer.attention] if is_decoder else []), layer.ffn]
    for residual, part in enumerate(parts):
        set_norm(part.layer_norm, params["residuals"][residual]["norm"])
    query, *keys_values, output = join(config, params["self_attention"])
    set_linear(layer.self_attention.linear, stack_rows(query, *keys_values), output)
    layer.self_attention.queries_scale = scale_of(config)
    if is_decoder:
        query, *keys_values, output = join(config, params["cross_attention"])
        set_linear(layer.attention.linear, query, stack_rows(*keys_values), output)
        layer.attention.queries_scale = scale_of(config)
    specs = {"up": layer.ffn.linear_0, "down": layer.ffn.linear_1}
    if config.gated:
        specs |= {"gate": layer.ffn.linear_0, "up": layer.ffn.linear_0_noact}
    set_linear(list(specs.values()), *(dense(params["feed_forward"][name]) for name in specs))


def stack_rows(*parts: Linear) -> Linear:
    return Linear(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def set_linear(specs: Sequence[Any], *layers: Linear) -> None:
    for spec, layer in zip(specs, layers, strict=True):
        spec.weight, spec.bias = map(own, layer)


def set_norm(spec: Any, params: Params) -> None:
    spec.gamma, spec.beta = own(params["scale"]), own(params["bias"])


def join(config: ModelConfig, params: Params) -> list[Linear]:
    """The layers of query, key, value and output, with heads of equal width."""
    return join_heads(split_heads(config, params), max(config.head_dim, config.value_width))


def own(array: Any) -> Float[np.ndarray, "*shape"]:
    """A contiguous copy, which CTranslate2 quantizes in place."""
    return np.array(array, np.float32, order="C")


def set_positions(stack: Any, config: ModelConfig, params: Params, *, causal: bool) -> None:
    """Set the position encodings of the encoder or the causal decoder."""
    match config.positions:
        case "sinusoidal" | "learned":
            stack.position_encodings.encodings = own(position_table(config, params))
        case "rotary":
            if not causal:
                del stack.position_encodings  # the encoder's specification keeps it in addition to rotary positions
        case "relative":
            set_bias(stack, params["relative_biases"][int(causal)]["table"], FARTHEST)
        case "alibi":
            set_bias(stack, alibi_table(config.num_heads, causal=causal), 2 * LONGEST)
        case _:
            raise NotImplementedError(f"model.positions={config.positions}")


def set_bias(stack: Any, table: Any, farthest: int) -> None:
    for layer in stack.layer:
        layer.self_attention.relative_attention_bias = own(table)
        layer.self_attention.relative_attention_max_distance = np.int32(farthest)


def alibi_table(heads: int, *, causal: bool) -> Float[np.ndarray, "buckets N"]:
    """A T5 bias with a bucket for each distance below ``LONGEST``; if it is not causal, one half is for later keys.

    T5 uses half of the buckets of a direction for single distances. The other half is for distances that do not occur.
    """
    distances = jnp.arange(2 * LONGEST)
    table = np.asarray(alibi_bias(distances[None], jnp.zeros((1, 1), jnp.int32), heads))[0, :, :, 0].T
    return table if causal else np.concatenate([table, table])
