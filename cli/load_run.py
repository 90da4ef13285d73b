"""A trained run as the programs use it: its config with overrides, its tokenizer, its parameters, a translator.

The one module of the rooms that reads configs and checkpoints together, because every program needs the two so.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from common.errors import UserError
from configs.load import differences, load_run_config
from configs.schema import RunConfig
from data.tokenizer import Tokenizer, load_tokenizer
from evaluation.translate import Translator
from model.config import ModelConfig
from model.transformer import Params
from training.run.checkpoint import load_for_inference

# A trained run is what it is; what may differ is how translations are searched and in which numbers.
MAY_CHANGE = ("decoding.", "model.dtype:", "model.matmul_dtype:")


@dataclass(frozen=True)
class Trained:
    """A run, or an ensemble of which it is the first: ``params`` and ``translator.models`` have one entry each."""

    config: RunConfig
    translator: Translator
    params: tuple[Params, ...]
    step: int  # of the run's own checkpoint


def load_trained(
    run_dir: Path, overrides: list[str], program: str, may_change: tuple[str, ...] = MAY_CHANGE
) -> Trained:
    """Read a run directory, and those of ``decoding.ensemble``; UserError for overrides that would change the run."""
    config = load_run_config(run_dir, overrides)
    refuse_changes(run_dir, config, program, may_change)
    tokenizer = load_tokenizer(run_dir)
    params, step = load_for_inference(run_dir, config.decoding.checkpoint, config.model, tokenizer.vocab_size)
    members = [_load_member(name, config, tokenizer) for name in config.decoding.ensemble]
    models = (config.model, *(model for model, _ in members))
    translator = Translator(models, tokenizer, config.decoding, config.data.row_length)
    return Trained(config, translator, (params, *(each for _, each in members)), step)


def refuse_changes(run_dir: Path, config: RunConfig, program: str, may_change: tuple[str, ...]) -> None:
    """UserError for the first difference from the saved config that is not one of these."""
    for difference in differences(load_run_config(run_dir), config):
        if not difference.startswith(may_change):
            raise UserError(f"{run_dir} is trained, so {program} cannot change {difference}")


def _load_member(name: str, config: RunConfig, tokenizer: Tokenizer) -> tuple[ModelConfig, Params]:
    """The model and parameters of RUN or RUN:CHECKPOINT, which must have the tokenizer of the run that it joins."""
    folder, _, checkpoint = (name, "", "") if os.path.isdir(name) else name.rpartition(":")
    member_dir = Path(folder or name)
    member = load_run_config(member_dir)
    if load_tokenizer(member_dir).model != tokenizer.model or member.data.source != config.data.source:
        raise UserError(f"decoding.ensemble: {member_dir} has another vocabulary or direction than {config.run_dir}")
    which = checkpoint or member.decoding.checkpoint
    return member.model, load_for_inference(member_dir, which, member.model, tokenizer.vocab_size)[0]
