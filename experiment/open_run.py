"""From a config to a run that is ready for its next step: check the corpus, record it, initialize or restore state."""

import contextlib
import json
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import UserError
from common.files import remove_leftovers, write_atomically
from common.signals import handle_signals
from configs.changes import accepted_changes, classify_changes
from configs.load import find_differences, flatten, load_config, load_run_config, save_config, to_yaml
from configs.schema import RunConfig
from data.batches.packing import Batch
from data.batches.stream import prefetch
from data.config import DataConfig
from data.prepare import Prepared
from data.tokens.tokenizer import Tokenizer
from evaluation.translate import Translator
from experiment.initial import load_initial
from experiment.plan import advise_small_corpus, describe_corpus, load_validation
from experiment.reports import report_key, set_reports_aside
from model.transformer import build
from training.config import ENDING
from training.devices.any_mesh import check_any_mesh, make_programs
from training.devices.compilation import compile_ahead, in_background
from training.devices.compiler import check_compiler, describe_compiler, is_audited
from training.devices.distributed import broadcast_from_first, check_same_on_all, is_first
from training.devices.mesh import Devices, abstract_state, check_divisible, compile_initial_state, make_mesh
from training.devices.preflight import check_memory, choose_kernels, device_memory
from training.devices.profile import profiled
from training.progress import DivergenceCheck, Progress, digest_batch
from training.run.background_save import Saves
from training.run.checkpoint import check_restorable, read_notes, restore
from training.run.config_history import archive_config, find_record, records, rewind_history
from training.run.corpus import (
    describe_start,
    find_changes,
    identify,
    load_identity,
    load_start,
    prepare_for_run,
    save_corpus,
    start_after_change,
)
from training.run.environment import check_types, describe_environment, find_setting_changes, read_settings
from training.run.layout import CONFIG, DATA, ENVIRONMENT, HELD_OUT, IN_PLACE, PROFILE, REPORTS, refuse_to_leave
from training.run.log import tell, warn
from training.run.monitor import Monitor
from training.run.pause import Clock, Pause
from training.run.retention import find_newest_checkpoint
from training.schedule import Schedule
from training.state import TrainState
from training.step import LossStep, StepReport, TrainStep
from training.validation import HeldOut, Validation


@dataclass(frozen=True)
class Run:
    """What the training loop works with. ``state`` and ``progress`` are the loop's initial values."""

    config: RunConfig
    devices: Devices
    train_step: TrainStep
    validation: Validation
    schedule: Schedule
    state: TrainState
    progress: Progress
    divergence: DivergenceCheck
    monitor: Monitor
    clock: Clock
    pause: Pause
    saves: Saves

    @property
    def directory(self) -> Path:
        return Path(self.config.run_dir)

    def batches(self, from_step: int) -> Generator[tuple[Batch, int], None, None]:
        """The batches of updates after ``from_step``, placed on devices ahead of their step, with their digests."""
        stream, depth = self.schedule.stream, self.config.data.prefetch
        return prefetch(stream, from_step, depth, self.devices.local_rows, self._place)

    def _place(self, step: int, batch: Batch) -> tuple[Batch, int]:
        devices = self.devices
        return devices.place(batch), digest_batch(batch, step + 1, devices.local_rows.start, devices.counted_rows)

    def watch(self, step: int, report: StepReport) -> None:
        """Advance the progress bar. UserError if the run has diverged or the current save has failed."""
        self.divergence.add(step, report)
        self.saves.check()
        self.monitor.advance()


def find_devices(config: RunConfig) -> Devices:
    """The devices of the config's mesh. UserError if the model or its batches cannot be split over them."""
    mesh = make_mesh(config.mesh)
    check_divisible(mesh, config.model, config.data.batch_rows, config.training.accumulation)
    check_any_mesh(config.training, mesh, config.data.batch_rows)
    return Devices(mesh, config.data.batch_rows)


@contextlib.contextmanager
def open_run(config: RunConfig, devices: Devices) -> Iterator[Run]:
    """Open the config's run directory, locked by the caller, at its newest good checkpoint or at step 0.

    Programs that do not depend on the corpus are compiled while it is prepared. A new state is allocated only after
    that: a mistyped vocabulary size, too large for the corpus, might not fit in memory either. UserError for a config,
    corpus or run directory that training cannot use; everything is checked before ``record_run`` first writes there.
    """
    run_dir, shape = Path(config.run_dir), (config.model, config.training, config.tokenizer.vocab_size)
    for name in IN_PLACE:
        refuse_to_leave(run_dir / name)
    newest = broadcast_from_first(find_newest_checkpoint(run_dir) if is_first() else None)
    like = abstract_state(devices.mesh, *shape)
    changes = check_continuation(config, run_dir, newest, like)
    initial = load_initial(config)
    compiled = in_background(compile_initial_state, like, *shape, initial.params) if newest is None else None
    prepared, data_changes = prepare_data(config, run_dir, newest, initial.tokenizer)
    programs = make_programs(build(config.model, config.tokenizer.vocab_size), config.training, like)
    validation = prepare_validation(config, prepared, devices, programs.loss_step)
    if compiled:
        step, progress, state = 0, Progress(), in_background(lambda: compiled.result()())
    elif newest is not None:
        step, progress = newest, Progress.from_notes(read_notes(run_dir, newest))
        if scores_do_not_compare(config, run_dir, newest, prepared):
            progress = progress.without_best_score()
        state = in_background(restore, run_dir, newest, like)
    if is_first():
        record_run(config, run_dir, newest, prepared, changes + data_changes)
        initial.save(run_dir)
    train_step, stream = programs.train_step, prepared.stream
    schedule, clock = Schedule(config.training, stream), Clock(step, progress.seconds)
    with (
        closing(Monitor(run_dir, step, schedule.expected_end(step), evaluated=progress.evaluated == step)) as monitor,
        Saves(run_dir, config.training.keep) as saves,
    ):
        end, corpus = schedule.describe_end(step), describe_corpus(prepared.report)
        monitor.show_settings(step, flatten(config))
        monitor.say(f"{run_dir}: step {step} of {end} on {devices}; {corpus}")
        if not schedule.is_complete(step, progress):
            train_step = compile_ahead(train_step, like, devices.batch_shapes(*stream.row_lengths))
        first_state, training = state.result(), config.training
        pause = Pause(clock, training.minutes, training.save_minutes, training.log_every)
        with (
            profiled(train_step, training.profile if is_first() else [], step, run_dir / PROFILE) as profiled_step,
            handle_signals(pause.record),
        ):
            clock.start_window(step)
            yield Run(
                config=config,
                devices=devices,
                train_step=profiled_step,
                validation=validation,
                schedule=schedule,
                state=first_state,
                progress=progress,
                divergence=DivergenceCheck(training.max_skipped, stream, run_dir),
                monitor=monitor,
                clock=clock,
                pause=pause,
                saves=saves,
            )


def check_run(config: RunConfig) -> None:
    """``check_config``, and UserError unless all processes have the same config and settings."""
    check_config(config)
    check_same_on_all("config", to_yaml(replace(config, mesh=replace(config.mesh, process=0))))
    check_same_on_all("setting of JAX in its environment", json.dumps(read_settings()))


def check_config(config: RunConfig) -> None:
    """UserError for mistakes that do not depend on the corpus, run directory or other processes, such as a kernel."""
    check_types()
    check_compiler()
    if config.decoding.ensemble:
        raise UserError("decoding.ensemble is for trained runs: use it with eval.py and scripts/translate.py")
    if config.training.epochs and config.training.schedule in ENDING:
        raise UserError(
            f"training.schedule={config.training.schedule} falls to zero at training.steps, but training.epochs could "
            "end the run earlier: set training.epochs=0"
        )
    choose_kernels(config.model, (config.data.row_length, config.data.row_length))


def check_continuation(config: RunConfig, run_dir: Path, newest: int | None, like: TrainState) -> list[str]:
    """Check the config against memory and the run's newest checkpoint; returns the accepted changes."""
    check_memory(like, device_memory())
    if newest is None:
        return []
    recorded, of_checkpoint = load_run_config(run_dir), records(run_dir, CONFIG, newest)[-1]
    is_recorded = not find_differences(recorded, config)
    before = recorded if is_recorded else load_config(of_checkpoint, [f"run_dir={run_dir}"])
    undone = [f"{line} (undone: no checkpoint has it)" for line in find_differences(recorded, before).values()]
    changes = accepted_changes(before, config) + find_setting_changes(run_dir, config.allow_changes)
    check_restorable(run_dir, newest, like)
    return undone + changes


def scores_do_not_compare(config: RunConfig, run_dir: Path, newest: int, prepared: Prepared) -> bool:
    """Whether validation scores up to the run's newest checkpoint are not comparable with later ones."""
    before = load_config(find_record(run_dir, CONFIG, newest), [f"run_dir={run_dir}"])
    known, new = load_identity(find_record(run_dir, DATA, newest)), identify(prepared.report)
    has_other_data = known is not None and any(known.files[split] != new.files[split] for split in ("train", "valid"))
    return has_other_data or "validation" in classify_changes(before, config).values()


def prepare_data(
    config: RunConfig, run_dir: Path, newest: int | None, tokenizer: Tokenizer | None = None
) -> tuple[Prepared, list[str]]:
    """The corpus, and its accepted changes since the newest checkpoint; UserError for others, or between processes."""
    prepared = prepare_for_run(run_dir, config.data, config.tokenizer, config.training.seed, tokenizer)
    check_same_on_all("corpus or tokenizer", prepared.stream.fingerprint)
    if newest is None:
        return prepared, []
    new, record = identify(prepared.report), find_record(run_dir, DATA, newest)
    changes, known = find_changes(records(run_dir, DATA, newest), new, config.allow_changes), load_identity(record)
    if known is not None and known.fingerprint == new.fingerprint:
        start = load_start(record)
    else:
        before = load_config(find_record(run_dir, CONFIG, newest), [f"run_dir={run_dir}"])
        start = start_after_change(run_dir, newest, before.data, before.training.seed, prepared)
        changes.append(describe_start(start))
    report = replace(prepared.report, start=start)
    return replace(prepared, stream=prepared.stream.starting_at(start), report=report), changes


def prepare_validation(config: RunConfig, prepared: Prepared, devices: Devices, loss_step: LossStep) -> Validation:
    """The validation of a run; UserError as ``load_validation``."""
    batches = load_validation(config, prepared)
    sets = [held_out_set(config, direction, prepared) for direction in config.data.directions]
    return Validation(Path(config.run_dir), prepared, devices, batches, loss_step, sets)


def held_out_set(config: RunConfig, data: DataConfig, prepared: Prepared) -> HeldOut:
    """The validation pairs in the direction of ``data``; the config's own direction has the plain name."""
    pairs, name = prepared.corpus.valid, "valid"
    if data.source != config.data.source:
        pairs, name = pairs.reversed(), f"valid.{data.source}-{data.target}"
    usual, languages = prepared.report.usual_source, (data.source, data.target)
    translator = Translator((config.model,), prepared.tokenizer, config.decoding, usual, *languages)
    conditions = report_key(replace(config, data=data), prepared.report.files.valid.sha256)
    return HeldOut(pairs, translator, conditions, name, ending=f"_{data.source}_{data.target}")


def record_run(config: RunConfig, run_dir: Path, newest: int | None, prepared: Prepared, changes: list[str]) -> None:
    """Write the description of the run: config, data, environment, and the changes since its newest checkpoint."""
    if newest is not None:
        rewind_history(run_dir, newest)
        if any("(changes the " in line for line in changes):
            archive_config(run_dir, newest)
    for line in prepared.corpus.warnings:
        warn(run_dir, line)
    if newest is None and not is_audited():
        tell(run_dir, f"python scripts/check_numbers.py CONFIG can check the numbers of {describe_compiler()}")
    if newest is None and (advice := advise_small_corpus(config, prepared)):
        tell(run_dir, advice)
    for line in changes:
        tell(run_dir, f"continuing {run_dir} from step {newest} with {line}")
    for folder in (run_dir, run_dir / REPORTS, run_dir / HELD_OUT):
        remove_leftovers(folder)
    set_stale_reports_aside(run_dir, newest, changes)
    save_corpus(run_dir, prepared)
    save_config(replace(config, allow_changes=False), run_dir / CONFIG)
    write_atomically(run_dir / ENVIRONMENT, json.dumps(describe_environment(), indent=1) + "\n")


def set_stale_reports_aside(run_dir: Path, newest: int | None, changes: list[str]) -> None:
    """Move old reports away if their scores could be mistaken for those of the changed model or test set."""
    is_other = newest is None or any("(changes the " in line for line in changes)
    has_other_test = any(line.startswith("data.test: SHA-256") for line in changes)
    names = "*" if is_other else "test*" if has_other_test else ""
    if names and (aside := set_reports_aside(run_dir, newest or 0, names)):
        tell(run_dir, f"earlier reports are now in {aside}; python eval.py {run_dir} scores the run as it is now")
