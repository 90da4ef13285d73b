"""A run's search settings in the words of an exported program."""

from dataclasses import replace
from typing import Any

from model.config import DecodingConfig


def plain(form: str, decoding: DecodingConfig) -> DecodingConfig:
    """The beam search that a format's program has: without draws, risk and further models, and mostly coverage."""
    coverage = decoding.coverage_penalty if form == "stablehlo" else 0.0
    return replace(decoding, search="beam", mbr="none", coverage_penalty=coverage, ensemble=[])


def settings_of(decoding: DecodingConfig) -> dict[str, Any]:
    """What an exported program reads."""
    names = ("beam_size", "normalization", "length_penalty", "max_length_factor", "max_length_extra")
    return {name: vars(decoding)[name] for name in names}


def describe(form: str, decoding: DecodingConfig) -> str:
    """How the program of a format searches, and what of the run's search it does not do."""
    missing = [key for key, value in vars(plain(form, decoding)).items() if vars(decoding)[key] != value]
    lacks = "".join(f" It has no decoding.{key}={vars(decoding)[key]}, and searches without." for key in missing)
    if decoding.beam_size == 1:
        return f"`translate.py` takes the likeliest token at each place (greedy search).{lacks}"
    match form:
        case "ct2":
            return describe_ctranslate2(decoding) + lacks
        case "hf":
            return describe_transformers(decoding) + lacks
        case "stablehlo":
            return f"The programs are the run's own beam search, with its beam of {decoding.beam_size}.{lacks}"
        case _:
            raise NotImplementedError(f"the format {form}")


def describe_ctranslate2(decoding: DecodingConfig) -> str:
    return (
        f"`translate.py` asks for {2 * decoding.beam_size} translations in a beam of {decoding.beam_size} "
        "(`length_penalty=1e-9, patience=2, return_end_token=True`), and takes the one with the best "
        f"log P(Y) / {divisor(decoding)}, with `</s>` counted in |Y|. With its own normalization, CTranslate2 may end "
        "a search earlier, and finds other translations of some sentences. The run never takes `<pad>`, `<unk>` or "
        "`<s>` into a translation; here they are possible, but a trained model gives them next to no probability."
    )


def describe_transformers(decoding: DecodingConfig) -> str:
    settings = (
        f'`translate.py` searches in a beam of {decoding.beam_size} with `early_stopping="never"`, never takes '
        f"`<pad>`, `<unk>` or `<s>`, and ranks by log P(Y) / {divisor(decoding)}, with `</s>` counted in |Y|. Where a "
        "translation reaches its limit of length, one without an end may displace one that the run would take."
    )
    if decoding.normalization == "length" or not decoding.length_penalty:
        return f"{settings} `generation_config.json` says the same, so that `model.generate` does it, too."
    return (
        f"{settings} `model.generate` alone, with `generation_config.json`, divides by "
        f"|Y|^{decoding.length_penalty:g}, and finds other translations of some sentences. A `length_penalty` of the "
        "class `GNMT` in `translate.py` makes it divide as the run does."
    )


def divisor(decoding: DecodingConfig) -> str:
    base = {"gnmt": "((5 + |Y|) / 6)", "length": "|Y|"}[decoding.normalization]
    return f"{base}^{decoding.length_penalty:g}"
