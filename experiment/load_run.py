"""Read a run directory: its config with overrides and, on demand, its model and how it was trained."""

import functools
import os
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from common.errors import UserError, write_note
from common.files import read_json_object
from configs.keys import KEYS
from configs.load import OF_ONE_RUN, find_differences, load_config, load_run_config
from configs.schema import RunConfig
from data.long_lines import Usual, count_usual_sentences
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer
from evaluation.over_devices import replicate_on_all
from evaluation.report import sentences_beside
from evaluation.sentences import Sentence, read_sentences
from evaluation.translate import Translator
from experiment.initial import load_recorded
from model.transformer import Params
from training.devices.compiler import check_compiler
from training.devices.preflight import choose_kernels
from training.replay.replay import RecordedRun, Setup
from training.run.checkpoint import load_for_inference
from training.run.config_history import find_record
from training.run.corpus import (
    identify,
    load_identity,
    load_start,
    load_tokenizer,
    load_usual_source,
    prepare_for_run,
)
from training.run.layout import CONFIG, DATA, report_path, split_checkpoint
from training.run.manifest import Manifest
from training.run.metrics import read_metrics
from training.run.retention import damaged_steps, has_checkpoints

MOST_PAIRS = 1_000_000  # more pairs are not loaded into memory beside a model
PRECISION = {"model.dtype", "model.matmul_dtype"}
# Overrides may change the search and the precision of translations, but nothing that was learned. With data.source and
# data.target, a model trained in both directions can translate in the other one.
MAY_CHANGE = {"data.source", "data.target"} | PRECISION | {key for key in KEYS if key.startswith("decoding.")}


def load_run(
    run_dir: Path, overrides: Sequence[str] = (), program: str = "", may_change: Collection[str] = MAY_CHANGE
) -> "LoadedRun":
    """Read a run's config; UserError if an override changes a key outside ``may_change``, which ``program`` names."""
    for key in (override.partition("=")[0] for override in overrides):
        if key in OF_ONE_RUN:
            raise UserError(f"{key} is for train.py: {program} uses the run {run_dir}, named without a key")
    run = LoadedRun(run_dir, load_run_config(run_dir, overrides), load_run_config(run_dir))
    for key, difference in find_differences(run.saved, run.config).items():
        if key not in may_change:
            raise UserError(f"{run_dir} is trained, so {program} cannot change {difference}")
    if (asked := f"{run.config.data.source} to {run.config.data.target}") not in run.directions:
        raise UserError(f"{run_dir} translates from {' and from '.join(run.directions)}, not from {asked}")
    return run


def load_experiment(program: str, path: str, overrides: Sequence[str]) -> RunConfig:
    """The config of ``PROGRAM PATH OVERRIDES``.

    UserError for the config of a run that is not in its own ``run_dir``, unless an override sets that: the command
    would start a new run in the old place, or continue the run that this is a copy of.
    """
    config, folder = load_config(path, overrides), Path(path).parent
    is_of_a_run = (folder / CONFIG).is_file() and has_checkpoints(folder)
    lies_there = os.path.exists(config.run_dir) and os.path.samefile(folder, config.run_dir)
    if not is_of_a_run or lies_there or any(each.startswith("run_dir=") for each in overrides):
        return config
    command = shlex.join(["python", program, path, *overrides, f"run_dir={folder}"])
    problem = f"{path} belongs to a run that was moved or copied: its run_dir is {config.run_dir}"
    raise UserError(f"{problem}. To use the run where it is now: {command}")


@dataclass(frozen=True)
class LoadedRun:
    """A run, or an ensemble with this run first; everything except its config is loaded lazily."""

    folder: Path
    config: RunConfig  # with the overrides
    saved: RunConfig  # what the run was last trained with

    @property
    def directions(self) -> list[str]:
        """The directions that were trained, as "en to es"."""
        return [f"{direction.source} to {direction.target}" for direction in self.saved.data.directions]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return load_tokenizer(self.folder)

    @property
    def translator(self) -> Translator:
        return self._loaded[0]

    @property
    def params(self) -> tuple[Params, ...]:
        """The parameters of each member, as in ``translator.models``, on every device of this process."""
        return self._loaded[1]

    @property
    def manifest(self) -> Manifest:
        """The manifest of the run's own checkpoint."""
        return self._loaded[2]

    @cached_property
    def _loaded(self) -> tuple[Translator, tuple[Params, ...], Manifest]:
        check_compiler()
        config, members = self.config, [self, *map(self._open_member, self.config.decoding.ensemble)]
        named = [(member.folder, member.config.decoding.checkpoint, member.config.model) for member in members]
        checkpoints = [load_for_inference(*each, self.tokenizer.vocab_size) for each in named]
        models = tuple(member.config.model for member in members)
        languages = config.data.source, config.data.target
        translator = Translator(models, self.tokenizer, config.decoding, self._usual_source(), *languages)
        return translator, replicate_on_all(tuple(params for params, _ in checkpoints)), checkpoints[0][1]

    def validated(self) -> tuple[list[Sentence], str]:
        """The sentences of the last validation and the name of their set; UserError if there are none yet."""
        report = report_path(self.folder, "valid")
        return read_sentences(sentences_beside(report)), str(read_json_object(report).get("test_set", ""))

    def _usual_source(self) -> Usual:
        """The typical size of training sources; for older runs, estimated from the validation set and row length."""
        if recorded := load_usual_source(self.folder):
            return recorded
        lines: list[str] = []
        with suppress(UserError):  # it has not been evaluated yet
            lines = [each.source for each in self.validated()[0]]
        data = self.saved.data
        return Usual(count_usual_sentences(lines, [data.source] * len(lines)), data.row_length)

    def _open_member(self, name: str) -> "LoadedRun":
        """RUN or RUN:CHECKPOINT, in this run's precision; UserError if its tokenizer or direction differs."""
        folder, checkpoint = split_checkpoint(name)
        data, model = self.config.data, self.config.model
        overrides = [f"model.dtype={model.dtype}", f"model.matmul_dtype={model.matmul_dtype}"]
        overrides += [f"decoding.checkpoint={checkpoint}"] if checkpoint else []
        member = load_run(folder, overrides)
        if member.tokenizer.model != self.tokenizer.model or f"{data.source} to {data.target}" not in member.directions:
            others = f"{member.folder} has another vocabulary or direction than {self.folder}"
            raise UserError(f"decoding.ensemble: {others}")
        return member

    def training_pairs(self) -> Pairs:
        """The pairs that the run was last trained on, in ``config``'s direction; UserError if they are unavailable."""
        data, known = replace(self.saved.data, root=self.config.data.root), load_identity(self.folder / DATA)
        if known is None or known.training_pairs > MOST_PAIRS:
            raise UserError(f"{self.folder / DATA} is damaged, or has more than {MOST_PAIRS:,} training pairs")
        prepared = prepare_for_run(self.folder, data, self.saved.tokenizer, self.saved.training.seed)
        if known.files["train"] != identify(prepared.report).files["train"]:
            raise UserError(f"the corpus is not the one recorded in {self.folder / DATA}")
        pairs = prepared.corpus.training
        return pairs if data.source == self.config.data.source else pairs.reversed()

    @cached_property
    def recorded(self) -> RecordedRun:
        """The run for replays; notes damaged checkpoints. Its corpus is prepared when the first update needs it."""
        for damaged in damaged_steps(self.folder):
            write_note(f"note: the checkpoint at step {damaged} of {self.folder} is damaged and left out")
        prepare_once = functools.cache(self._prepare_setup)

        def setup(step: int) -> Setup:
            return prepare_once(find_record(self.folder, CONFIG, step), find_record(self.folder, DATA, step))

        metrics = {line["step"]: line for line in read_metrics(self.folder) if line["kind"] == "train"}
        initial = self._read_record(find_record(self.folder, CONFIG, 1))
        return RecordedRun(self.folder, setup, initial.model, self.saved.training, metrics)

    def _prepare_setup(self, config_path: Path, data_path: Path) -> Setup:
        """The batches according to these records of the run; UserError if the corpus no longer yields them."""
        config = self._read_record(config_path)
        choose_kernels(config.model, (config.data.row_length,) * 2)
        tokenizer = self.tokenizer if config.training.init_from else None
        prepared = prepare_for_run(self.folder, config.data, config.tokenizer, config.training.seed, tokenizer)
        recorded, current = read_json_object(data_path).get("fingerprint"), prepared.stream.fingerprint
        if not isinstance(recorded, str):
            raise UserError(f"{data_path} is missing or damaged, so the batches cannot be verified; bring it back")
        if recorded != current:
            batches = f"it gives other batches (fingerprint {recorded[:8]} → {current[:8]})"
            advice = "Bring the old one back, or name its folder with PUENTE_CORPUS"
            raise UserError(f"the corpus has changed since {data_path} was written: {batches}. {advice}")
        initial = partial(load_recorded, self.folder, config) if config.training.init_from else None
        return Setup(config.model, config.training, prepared.stream.starting_at(load_start(data_path)), initial)

    def _read_record(self, path: Path) -> RunConfig:
        return load_config(path, [f"run_dir={self.folder}"])
