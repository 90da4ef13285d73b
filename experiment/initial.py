"""Initial parameters from another run: ``training.init_from``."""

import json
from pathlib import Path
from typing import NamedTuple

from common.errors import UserError
from common.files import read_json_object, sha256, write_atomically
from configs.keys import KEYS
from configs.load import find_differences, load_run_config
from configs.schema import RunConfig
from data.tokens.tokenizer import Tokenizer
from model.transformer import Params
from training.run.checkpoint import load_for_inference
from training.run.corpus import load_tokenizer
from training.run.layout import INITIAL, split_checkpoint
from training.run.retention import has_checkpoints


class Initial(NamedTuple):
    """Parameters and tokenizer of another run; ``record`` says where they come from, with the SHA-256 of each."""

    params: Params | None = None
    tokenizer: Tokenizer | None = None
    record: dict[str, str] | None = None

    def save(self, run_dir: Path) -> None:
        if self.record:
            write_atomically(run_dir / INITIAL, json.dumps(self.record, indent=1) + "\n")


def load_initial(config: RunConfig) -> Initial:
    """Load what a new run starts from; if the other run averages, the average.

    Empty without ``training.init_from``, or for a run that already has a checkpoint. UserError for another kind of
    model, or a tokenizer that does not fit.
    """
    if not config.training.init_from or has_checkpoints(Path(config.run_dir)):
        return Initial()
    folder, checkpoint = split_checkpoint(config.training.init_from)
    source = load_run_config(folder, [f"decoding.checkpoint={checkpoint}"] if checkpoint else [])
    tokenizer, which = load_tokenizer(folder), source.decoding.checkpoint
    check_fits(source, tokenizer, config)
    params, manifest = load_for_inference(folder, which, config.model, tokenizer.vocab_size)
    named = str(manifest.step) if which in ("best", "latest") else which  # which may change later
    record = {"run": str(folder), "checkpoint": named, "sha256": manifest.digest, "tokenizer": sha256(tokenizer.model)}
    return Initial(params, tokenizer, record)


def check_fits(source: RunConfig, tokenizer: Tokenizer, config: RunConfig) -> None:
    """UserError if the models of two runs differ in more than their training, or direction tags are missing."""
    differences, sections = find_differences(source, config).items(), ("model.", "tokenizer.")
    of_model = [key for key in KEYS if key.startswith(sections) and KEYS[key].metadata["changes"] == "model"]
    lines = [line for key, line in differences if key in of_model]
    if not all(map(tokenizer.tag, config.data.tags)):
        lines = ["data.direction=both, for which its vocabulary has no tags"]
    if lines:
        raise UserError(f"training.init_from={config.training.init_from} does not fit: {'; '.join(lines)}")


def load_recorded(run_dir: Path, config: RunConfig) -> Params:
    """The initial parameters of a run, for replays; UserError if they are no longer available."""
    record = read_json_object(run_dir / INITIAL)
    if not {"run", "checkpoint", "sha256"} <= record.keys():
        raise UserError(f"{run_dir / INITIAL} is missing or damaged: bring it back")
    source, which = Path(record["run"]), record["checkpoint"]
    params, manifest = load_for_inference(source, which, config.model, config.tokenizer.vocab_size)
    if manifest.digest != record["sha256"]:
        raise UserError(f"{run_dir} started from other parameters than {source} now has in its checkpoint {which}")
    return params
