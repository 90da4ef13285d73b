"""A run's search settings in the words of an exported program."""

from dataclasses import replace
from typing import Any

from model.config import DecodingConfig


def plain(decoding: DecodingConfig) -> DecodingConfig:
    """The beam search that an exported program has: without draws, risk, coverage and further models."""
    return replace(decoding, search="beam", mbr="none", coverage_penalty=0.0, ensemble=[])


def settings_of(decoding: DecodingConfig) -> dict[str, Any]:
    """What an exported program reads."""
    names = ("beam_size", "normalization", "length_penalty", "max_length_factor", "max_length_extra")
    return {name: vars(decoding)[name] for name in names}


def describe(decoding: DecodingConfig) -> str:
    """How the program searches, and what of the run's search it does not do."""
    missing = [key for key, value in vars(plain(decoding)).items() if vars(decoding)[key] != value]
    lacks = "".join(f" It has no decoding.{key}={vars(decoding)[key]}, and searches without." for key in missing)
    if decoding.beam_size == 1:
        return f"`translate.py` takes the likeliest token at each place (greedy search).{lacks}"
    base = {"gnmt": "((5 + |Y|) / 6)", "length": "|Y|"}[decoding.normalization]
    return (
        f"`translate.py` asks for {2 * decoding.beam_size} translations in a beam of {decoding.beam_size} "
        "(`length_penalty=1e-9, patience=2, return_end_token=True`), and takes the one with the best "
        f"log P(Y) / {base}^{decoding.length_penalty:g}, with `</s>` counted in |Y|. With its own normalization, "
        f"CTranslate2 may end a search earlier, and finds other translations of some sentences.{lacks}"
    )
