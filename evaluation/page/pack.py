"""A run as the page reads it: bytes with every parameter, and JSON with everything else.

A matrix is packed with a row for each output. In 8 or 16 bits, a row has whole numbers and one scale: the row's largest
absolute value divided by the largest whole number.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from data.capitals import FEWEST
from data.invisible import BLANK, SHAPING_NOTHING, WITHOUT_MEANING
from data.tokens.tokenizer import META_STAND_IN, Tokenizer
from evaluation.faithfulness.heads import Head
from evaluation.translate import Translator
from model.config import ModelConfig
from model.transformer import Params

WHOLE = {8: np.int8, 16: np.int16}  # by the number of bits
BITS = (*WHOLE, 32)
READING = {
    "without_meaning": WITHOUT_MEANING.pattern,
    "shaping_nothing": SHAPING_NOTHING.pattern,
    "blank": f"^{BLANK.pattern}$",
    "fewest_capitals": FEWEST,
}
EXAMPLES = {
    "en": "My sister is going to buy the white shoes.",
    "es": "Mi hermana va a comprar los zapatos blancos.",
}

Array = Float[np.ndarray, "..."]


@dataclass(frozen=True)
class Cost:
    """The change of BLEU on the validation set without a head, and half of its interval's width."""

    head: Head
    change: float
    half: float


@dataclass(frozen=True)
class PackedRun:
    """A run in the page: ``facts`` record where in ``content`` each parameter is."""

    facts: dict[str, Any]
    content: bytes


def pack_run(
    name: str, translators: list[Translator], vocabulary: str, params: Params, bits: int, costs: list[Cost]
) -> PackedRun:
    """Pack a run; ``translators`` has one for each direction of its model. ``vocabulary`` is unigram or bpe."""
    translator = translators[0]
    places, content = pack_params(params, bits)
    facts = {
        "name": name,
        "bits": bits,
        "model": asdict(translator.models[0]) | sizes(translator.models[0]),
        "decoding": asdict(translator.decoding),
        "directions": [
            {"source": each.source, "target": each.target, "tag": each.tag, "example": EXAMPLES.get(each.source, "")}
            for each in translators
        ],
        "tokenizer": describe_tokenizer(translator.tokenizer, vocabulary),
        "reading": READING,
        "parameters": places,
        "costs": [each.head._asdict() | {"change": each.change, "half": each.half} for each in costs],
    }
    return PackedRun(facts, content)


def sizes(config: ModelConfig) -> dict[str, Any]:
    """Values derived from a config, by the names of its properties."""
    return {"groups": config.groups, "value_width": config.value_width, "final_norm": config.final_norm}


def pack_params(params: Params, bits: int) -> tuple[list[dict[str, Any]], bytes]:
    """Each parameter's name, shape, bits and start, and the bytes of all."""
    places, content = [], bytearray()
    for name, array in rows_of_outputs(params):
        own_bits = bits if array.ndim > 1 else 32
        places.append({"name": name, "shape": array.shape, "bits": own_bits, "start": len(content)})
        content += pack_array(array, own_bits)
    return places, bytes(content)


def rows_of_outputs(params: Params, prefix: str = "") -> Iterator[tuple[str, Array]]:
    """Every parameter, named by its path; kernels are transposed, so that a row gives one output."""
    for key, value in params.items():
        if isinstance(value, dict):
            yield from rows_of_outputs(value, f"{prefix}{key}.")
        else:
            array = np.asarray(value, np.float32)
            yield f"{prefix}{key}", array.T if key == "kernel" else array


def pack_array(array: Array, bits: int) -> bytes:
    """Little-endian: the float32 numbers or, with fewer bits, a scale for each row, then whole numbers, then zeros.

    The length is a multiple of four bytes.
    """
    if bits == 32:
        return array.astype("<f4").tobytes()
    scales, numbers = quantise(array, bits)
    packed = scales.astype("<f4").tobytes() + numbers.astype(np.dtype(WHOLE[bits]).newbyteorder("<")).tobytes()
    return packed + bytes(-len(packed) % 4)


def quantise(array: Array, bits: int) -> tuple[Float[np.ndarray, "*rows 1"], np.ndarray]:
    """A scale for each row, and whole numbers that, times the scale, give the row to within half a scale."""
    scales = np.abs(array).max(axis=-1, keepdims=True) / np.float32(2 ** (bits - 1) - 1)
    numbers = np.rint(array / np.where(scales == 0, 1, scales))
    return scales, numbers.astype(WHOLE[bits])


def describe_tokenizer(tokenizer: Tokenizer, kind: str) -> dict[str, Any]:
    """The vocabulary as spelled in the SentencePiece file; byte pieces and symbols are not text."""
    return {
        "type": kind,
        "pieces": tokenizer.vocabulary(),
        "scores": tokenizer.scores.tolist(),
        "is_byte": np.flatnonzero(tokenizer.is_byte).tolist(),
        "is_symbol": sorted({*range(tokenizer.vocab_size)} - tokenizer.spelled.keys()),
        "meta_stand_in": META_STAND_IN,
    }
