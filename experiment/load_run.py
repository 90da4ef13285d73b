"""Load a run for inference: its config with overrides, its tokenizer, its parameters, and a translator."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import UserError
from configs.keys import RUN_KEYS
from configs.load import find_differences, load_run_config
from configs.schema import RunConfig
from data.config import DataConfig
from data.tokens.tokenizer import Tokenizer, load_tokenizer
from evaluation.over_devices import replicate_on_all
from evaluation.translate import Translator
from model.config import ModelConfig
from model.transformer import Params
from training.run.checkpoint import load_for_inference

# Overrides may change how translations are searched and in which precision, but nothing that was learned. A model of
# both directions takes the other one, with data.source and data.target.
MAY_CHANGE = ("decoding.", "model.dtype:", "model.matmul_dtype:", "data.source:", "data.target:")


@dataclass(frozen=True)
class LoadedRun:
    """A run, or an ensemble with this run first: ``params`` and ``translator.models`` have one entry per member."""

    config: RunConfig
    translator: Translator
    params: tuple[Params, ...]
    step: int  # of the run's own checkpoint


def load_run(run_dir: Path, overrides: list[str], program: str, may_change: tuple[str, ...] = MAY_CHANGE) -> LoadedRun:
    """Load a run and those of ``decoding.ensemble``; UserError if an override changes a key outside ``may_change``."""
    for key in (override.partition("=")[0] for override in overrides):
        if key in {each.name for each in RUN_KEYS}:
            raise UserError(f"{key} is for train.py: {program} uses the run {run_dir}, named without a key")
    config, saved = load_run_config(run_dir, overrides), load_run_config(run_dir)
    for difference in find_differences(saved, config).values():
        if not difference.startswith(may_change):
            raise UserError(f"{run_dir} is trained, so {program} cannot change {difference}")
    check_direction(config.data, saved.data, run_dir)
    tokenizer = load_tokenizer(run_dir)
    params, step = load_for_inference(run_dir, config.decoding.checkpoint, config.model, tokenizer.vocab_size)
    members = [_load_member(name, config, tokenizer) for name in config.decoding.ensemble]
    models = (config.model, *(model for model, _ in members))
    translator = Translator(models, tokenizer, config.decoding, config.data.row_length, config.data.target)
    everywhere = replicate_on_all((params, *(member_params for _, member_params in members)))
    return LoadedRun(config, translator, everywhere, step)


def check_direction(chosen: DataConfig, saved: DataConfig, run_dir: Path) -> None:
    trained = [f"{direction.source} to {direction.target}" for direction in saved.directions]
    asked = f"{chosen.source} to {chosen.target}"
    if asked not in trained:
        raise UserError(f"{run_dir} translates from {' and from '.join(trained)}, not from {asked}")


def _load_member(name: str, config: RunConfig, tokenizer: Tokenizer) -> tuple[ModelConfig, Params]:
    """Load RUN or RUN:CHECKPOINT, in the run's precision; UserError if its tokenizer or direction differs."""
    folder, _, checkpoint = (name, "", "") if os.path.isdir(name) else name.rpartition(":")
    member_dir = Path(folder or name)
    member = load_run_config(member_dir)
    sources = [direction.source for direction in member.data.directions]
    if load_tokenizer(member_dir).model != tokenizer.model or config.data.source not in sources:
        raise UserError(f"decoding.ensemble: {member_dir} has another vocabulary or direction than {config.run_dir}")
    which = checkpoint or member.decoding.checkpoint
    model = replace(member.model, dtype=config.model.dtype, matmul_dtype=config.model.matmul_dtype)
    return model, load_for_inference(member_dir, which, model, tokenizer.vocab_size)[0]
