"""Export to Hugging Face's transformers (Wolf et al. 2020): Pegasus for pre-norm, Marian for post-norm.

Their classes compute the same as ours, apart from three differences, which other arithmetic cancels. They always divide
queries by the root of their width: ours are scaled so that our own score results. Every head has its own keys and
values: those of groups are repeated. Norms add 1e-5 to the variance, ours 1e-6: Pegasus gets a residual stream that is
√10 times as large, which its norms divide out. Marian cannot, because its positions are not in the file: its norms
differ by 5e-6 over the variance.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from safetensors.numpy import save

from common.files import write_json
from common.special_tokens import BOS, EOS, PAD
from data.tokens.tokenizer import Tokenizer, tag_piece
from exports.heads import Heads, Linear, dense, join_heads, longest, pad_axis, position_table, scale_of, split_heads
from model.config import DecodingConfig, ModelConfig
from model.transformer import Params

ACTIVATIONS = {"relu": "relu", "gelu": "gelu_new", "silu": "silu", "relu_squared": "relu2"}
GROWTH = math.sqrt(1e-5 / 1e-6)  # of the residual stream
TOKENS = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS}

Weights = dict[str, Float[np.ndarray, "..."]]


def find_obstacle(config: ModelConfig) -> str:
    """Why transformers cannot compute this model; empty if it can."""
    if config.gated:
        return "transformers has no encoder-decoder with model.gated=true and layers like ours"
    match config.score, config.positions, config.norm:
        case "additive", _, _:
            return "transformers has no model.score=additive, only dot products and what they can express"
        case _, ("rotary" | "alibi" | "relative"), _:
            lacks = f"transformers has no encoder-decoder with model.positions={config.positions} and layers like ours"
            others = "with sinusoidal or, with model.norm=pre, learned positions; the format ct2 supports them all"
            return f"{lacks}, only {others}"
        case _, "learned", "post":
            return "transformers' Marian, which has model.norm=post, keeps no learned positions; sinusoidal ones fit"
        case (("scaled_dot_product" | "dot_product" | "general"), ("sinusoidal" | "learned"), ("pre" | "post")):
            if any(head_counts(config)):
                return ""
            heads = f"{config.num_heads} of width {max(config.head_dim, config.value_width)}"
            divides = f"transformers divides model.d_model={config.d_model} among heads of one width"
            return f"{divides}, which leaves no room for {heads}"
        case _:
            raise NotImplementedError(f"model.score={config.score} with {config.positions} positions, {config.norm}")


def head_counts(config: ModelConfig) -> Iterator[int]:
    """The numbers of heads, at least ours, that divide the model's width into parts at least as wide as our heads."""
    most = config.d_model // max(config.head_dim, config.value_width)
    return (count for count in range(config.num_heads, most + 1) if config.d_model % count == 0)


def make_config(config: ModelConfig, vocab_size: int) -> dict[str, Any]:
    """``config.json``: the class and its sizes."""
    heads = next(head_counts(config))
    kind = "pegasus" if config.final_norm else "marian"
    return {
        "architectures": [{"pegasus": "PegasusForConditionalGeneration", "marian": "MarianMTModel"}[kind]],
        "model_type": kind,
        "vocab_size": vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": ACTIVATIONS[config.activation],
        "max_position_embeddings": longest(config),
        "scale_embedding": True,
        **TOKENS,
        "forced_eos_token_id": None,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "dtype": "float32",
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
    }


def make_weights(config: ModelConfig, params: Params) -> Weights:
    """``model.safetensors``: the parameters, by their names in transformers."""
    growth = GROWTH if config.final_norm else 1.0
    table = np.asarray(params["embedding"]["table"])
    weights: Weights = {"model.shared.weight": growth * table, "final_logits_bias": np.zeros((1, len(table)))}
    for number, stack in enumerate(("encoder", "decoder")):
        for index, layer in params[stack].items():
            weights |= named(f"model.{stack}.layers.{index}", make_layer(config, layer, growth))
        if config.final_norm:
            shrink = 1 / growth if stack == "decoder" else 1.0  # before the product with the table, which is scaled
            final = scaled(norm_of(params["final_norms"][number]), shrink)
            weights |= named(f"model.{stack}", {"layer_norm": final})
            weights[f"model.{stack}.embed_positions.weight"] = growth * position_table(config, params)
    return {name: np.array(array, np.float32, order="C") for name, array in weights.items()}


def make_layer(config: ModelConfig, params: Params, growth: float) -> dict[str, Linear]:
    """Self-attention, encoder-decoder attention in the decoder, and the feed-forward network."""
    blocks = {"self_attn": "self_attention", "encoder_attn": "cross_attention"}
    layers: dict[str, Linear] = {}
    for theirs, ours in blocks.items():
        if ours in params:
            query, key, value, output = join(config, params[ours])
            parts = {"q_proj": query, "k_proj": key, "v_proj": value, "out_proj": scaled(output, growth)}
            layers |= {f"{theirs}.{name}": part for name, part in parts.items()}
    up, down = (dense(params["feed_forward"][name]) for name in ("up", "down"))
    layers |= {"fc1": up, "fc2": scaled(down, growth)}
    norms = [f"{theirs}_layer_norm" for theirs, ours in blocks.items() if ours in params] + ["final_layer_norm"]
    return layers | {name: norm_of(params["residuals"][index]["norm"]) for index, name in enumerate(norms)}


def join(config: ModelConfig, params: Params) -> list[Linear]:
    """The layers of query, key, value and output, with the same number of heads for keys, values and queries."""
    count, heads = next(head_counts(config)), split_heads(config, params)
    width, repeats = config.d_model // count, config.num_heads // config.groups
    query = scaled(heads.query, scale_of(config) * math.sqrt(width))
    key, value = jax.tree.map(lambda array: np.repeat(array, repeats, axis=0), (heads.key, heads.value))
    parts = query, key, value, heads.output
    query, key, value, output = jax.tree.map(lambda array: pad_axis(array, count, axis=0), parts)
    return join_heads(Heads(query, key, value, output, heads.output_bias), width)


def norm_of(params: Params) -> Linear:
    return Linear(np.asarray(params["scale"]), np.asarray(params["bias"]))


def scaled(layer: Linear, factor: float) -> Linear:
    return Linear(factor * layer.weight, factor * layer.bias)


def named(prefix: str, layers: dict[str, Linear]) -> Weights:
    by_name = {f"{prefix}.{name}": layer._asdict() for name, layer in layers.items()}
    return {f"{name}.{kind}": array for name, parts in by_name.items() for kind, array in parts.items()}


def make_generation_config(config: ModelConfig, decoding: DecodingConfig, limit: int) -> dict[str, Any]:
    """``generation_config.json``: the run's search, as far as transformers supports it.

    ``limit`` is the most tokens in any translation: transformers has no limit that depends on the source, and with
    early_stopping="never" it searches up to the limit for every sentence.
    """
    beam = {"length_penalty": decoding.length_penalty, "early_stopping": "never"} if decoding.beam_size > 1 else {}
    return {
        "num_beams": decoding.beam_size,
        **beam,
        "max_length": min(limit + 1, longest(config)),  # with the token that the decoder starts with
        "suppress_tokens": list(range(EOS)),
        **TOKENS,
    }


def save_model(
    folder: Path, config: ModelConfig, decoding: DecodingConfig, params: Params, vocab_size: int, limit: int
) -> None:
    """Write ``config.json``, ``generation_config.json`` and ``model.safetensors`` to an existing folder."""
    write_json(folder / "config.json", make_config(config, vocab_size))
    write_json(folder / "generation_config.json", make_generation_config(config, decoding, limit))
    (folder / "model.safetensors").write_bytes(save(make_weights(config, params), {"format": "pt"}))


def save_tokenizer(folder: Path, config: ModelConfig, tokenizer: Tokenizer, languages: tuple[str, str]) -> None:
    """Write the files of a MarianTokenizer, which has one SentencePiece model for each side.

    Its language codes, such as >>es<< at the start of a line, are the tags of a model with both directions.
    """
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(tokenizer.model)
    codes = {tag_piece(language): f">>{language}<<" for language in languages}
    write_json(folder / "vocab.json", {codes.get(piece, piece): id for id, piece in enumerate(tokenizer.vocabulary())})
    facts = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "model_max_length": longest(config),
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "separate_vocabs": False,
    }
    write_json(folder / "tokenizer_config.json", facts)
