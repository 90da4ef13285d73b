"""The export formats: what each needs, cannot express, and writes. A format's library is imported only for it."""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from data import long_lines
from evaluation.translate import Translator
from model.config import DecodingConfig, ModelConfig
from model.transformer import Params
from training.run.layout import TOKENIZER

# The keys of ``decoding`` that an exported program reads.
SEARCH = ("beam_size", "normalization", "length_penalty", "max_length_factor", "max_length_extra")
PROGRAMS, DATA = Path(__file__).parent / "programs", Path(long_lines.__file__).parent


class Format(NamedTuple):
    """A format's program, and the packages that it needs in addition to this project's own."""

    program: str
    writing: tuple[str, ...]
    checking: tuple[str, ...]


FORMATS = {
    "ct2": Format("ctranslate2_translate.py", ("ctranslate2",), ("ctranslate2",)),
    "hf": Format("transformers_translate.py", ("safetensors",), ("torch", "transformers")),
}


def missing_packages(packages: tuple[str, ...]) -> str:
    """The packages that cannot be imported, as arguments for pip install."""
    return " ".join(package for package in packages if find_spec(package) is None)


def find_obstacle(form: str, config: ModelConfig) -> str:
    """Why a format cannot express a model; empty if it can."""
    norm, gates, first, width = config.query_key_norm, config.head_gates, config.value_residual, config.encoder_width
    keys = {"query_key_norm": norm, "head_gates": gates, "value_residual": first, "encoder_width": width}
    if lacking := [f"model.{key}" for key, value in keys.items() if value]:
        return f"no format has {' and '.join(lacking)}"
    match form:
        case "ct2":
            from exports import ctranslate2

            return ctranslate2.find_obstacle(config)
        case "hf":
            from exports import transformers

            return transformers.find_obstacle(config)
        case _:
            raise NotImplementedError(f"the format {form}")


def save_model(form: str, folder: Path, translator: Translator, params: Params, quantization: str) -> None:
    """Write a model, its tokenizer and program; ``quantization`` is for ct2."""
    config, tokenizer = translator.models[0], translator.tokenizer
    shutil.copyfile(PROGRAMS / FORMATS[form].program, folder / "translate.py")
    for module in (PROGRAMS / "sentences.py", DATA / "capitals.py", DATA / "invisible.py", DATA / "long_lines.py"):
        shutil.copyfile(module, folder / module.name)
    match form:
        case "ct2":
            from exports import ctranslate2

            ctranslate2.save_model(folder, config, params, tokenizer.vocabulary(), quantization)
            (folder / TOKENIZER).write_bytes(tokenizer.model)
        case "hf":
            from exports import transformers

            limit = translator.limit(translator.longest)
            transformers.save_model(folder, config, translator.decoding, params, tokenizer.vocab_size, limit)
            transformers.save_tokenizer(folder, config, tokenizer, (translator.source, translator.target))
        case _:
            raise NotImplementedError(f"the format {form}")


def plain(decoding: DecodingConfig) -> DecodingConfig:
    """The beam search of the exported programs: without sampling, minimum Bayes risk, coverage and ensembles."""
    return replace(decoding, search="beam", mbr="none", coverage_penalty=0.0, ensemble=[])
