"""Train a translation Transformer: python train.py configs/NAME.yaml [key=value …].

The run lives in runs/NAME. The same command starts it, continues it where it stopped, or says that it is done.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

import jax
from jax.sharding import Mesh

from cli.command_line import command_line
from common.errors import UserError, exit_on_user_error
from common.files import append_line, remove_leftovers, write_atomically
from configs.changes import accepted_changes
from configs.load import load_config, load_run_config, save_config, to_yaml
from configs.schema import RunConfig
from data.batches.prefetch import prefetch
from data.batches.validation import validation_batches
from data.prepare import Prepared, prepare
from evaluation.evaluate import evaluate, write_report
from evaluation.translate import Translator
from model.sharding import mesh_of
from model.transformer import build
from training.devices.background import in_background
from training.devices.compilation import compile_ahead, recompilations_told
from training.devices.distributed import (
    ending_with_others,
    is_first,
    join_others,
    leave_together,
    of_any,
    of_first,
    refuse_difference,
)
from training.devices.dry_run import corpus_in_words, summary
from training.devices.mesh import (
    compiled_initial_state,
    everywhere,
    laid_out,
    layout_of,
    make_mesh,
    mean_losses,
    mesh_in_words,
    on_devices,
    refuse_uneven,
    rows_here,
)
from training.devices.preflight import choose_kernels, refuse_beyond_table
from training.progress import Progress, find_last_step, readings, refuse_divergence
from training.run.checkpoint import find_newest, keep_only, note, notes, restore, save
from training.run.config_history import keep_records, rewind_records
from training.run.environment import environment
from training.run.lock import locked, refuse_if_lost
from training.run.metrics import Monitor, Silence
from training.run.signals import exit_when_interrupted, noted, why_paused
from training.state import TrainState, after_log, make_loss_step, make_train_step


def main() -> None:
    """Entry point."""
    path, overrides = command_line(__doc__ or "", "CONFIG", "an experiment, such as configs/tatoeba-small.yaml")
    again = "the same command continues from the last checkpoint"
    with ending_with_others(again), exit_on_user_error(), exit_when_interrupted(again):
        config = load_config(path, overrides)
        join_others(config.mesh)
        print_plan(config) if config.dry_run else train(config)


def print_plan(config: RunConfig) -> None:
    """What ``dry_run=true`` shows."""
    mesh = make_mesh(config.mesh)
    refuse_uneven(mesh, config.model, config.data.batch_rows, config.training.accumulation)
    if not is_first():
        return
    print(summary(config.model, config.training, config.data, config.tokenizer.vocab_size, mesh))
    print(f"run directory        {config.run_dir}\n\n{to_yaml(config)}", end="")


def train(config: RunConfig) -> None:
    """A whole run, held against other processes: data, restored state, steps."""
    run_dir, mesh = Path(config.run_dir), make_mesh(config.mesh)
    refuse_uneven(mesh, config.model, config.data.batch_rows, config.training.accumulation)
    choose_kernels(config.model, (config.data.row_length,) * 2)  # or a UserError, before anything is written
    refuse_difference("config", to_yaml(replace(config, mesh=replace(config.mesh, process=0))))
    with locked(run_dir):
        newest = of_first(find_newest(run_dir) if is_first() else None)
        parts = config.model, config.training, config.tokenizer.vocab_size  # no state need wait for the corpus
        layout = layout_of(mesh, *parts)
        if newest is None:  # only compiled as yet: such a vocabulary may be beyond the corpus, and beyond memory
            compiled = in_background(compiled_initial_state, layout, *parts)
        prepared = prepare_run(config, run_dir, newest)
        if newest is None:
            state = in_background(lambda: compiled.result()())
        else:
            state = in_background(restore, run_dir, newest, laid_out(layout, *parts))
        progress = Progress() if newest is None else Progress.from_notes(notes(run_dir, newest))
        take_steps(config, prepared, run_dir, newest or 0, layout, state, progress)


def take_steps(
    config: RunConfig,
    prepared: Prepared,
    run_dir: Path,
    step: int,
    layout: TrainState,
    begun: Future[TrainState],
    progress: Progress,
) -> None:
    """Steps after ``step`` with visible ifs: log, save, evaluate, stop. ``begun`` will be the state."""
    settings, last_step = config.training, find_last_step(config.training, prepared.stream)
    mesh, rows = mesh_of(layout), config.data.batch_rows
    here = rows_here(mesh, rows)
    parts = config.model, settings, config.tokenizer.vocab_size
    train_step = make_train_step(build(config.model, config.tokenizer.vocab_size), settings, layout)
    check = partial(refuse_divergence, limit=settings.max_skipped, stream=prepared.stream, run_dir=run_dir)
    validate = make_validation(config, prepared, run_dir, mesh)
    evaluated, earlier_seconds, session_start = progress.evaluated == step, progress.seconds, time.monotonic()
    with (
        closing(prefetch(prepared.stream, step, config.data.prefetch, here)) as batches,
        closing(Monitor(run_dir, step, last_step, evaluated=evaluated) if is_first() else Silence()) as monitor,
        recompilations_told("train_step", lambda told: monitor.say(f"step {step + 1}: {told}")),
        noted() as stop,
    ):
        monitor.say(f"{run_dir}: step {step} of {last_step} on {mesh_in_words(mesh)}; {corpus_in_words(prepared)}")
        if step < last_step and not progress.is_exhausted(settings.patience):  # else the run is complete
            first = on_devices(mesh, prepared.stream.batch(step, here), rows, here)
            compile_ahead(train_step, laid_out(layout, *parts), first)
        state = begun.result()
        window_first_step, window_start = step, time.monotonic()
        previous, stopping, session_seconds, pause_start = None, False, 0.0, time.monotonic()
        while True:
            evaluation_due = step % settings.eval_every == 0 or step == last_step
            if evaluation_due and progress.evaluated < step:
                with stop.at_once():  # all is saved: the restart evaluates
                    bleu = validate(state, progress.seconds / 60, monitor)
                progress = progress.after_evaluation(step, bleu)
                note(run_dir, step, progress.noted())
                keep_only(run_dir, settings.keep, progress.best_step)
            if step >= last_step or progress.is_exhausted(settings.patience):
                best = f"BLEU {progress.best_bleu:.2f} at step {progress.best_step}"
                monitor.say(f"{run_dir} is complete at step {step}: {best}")
                break
            if stopping:
                reason = why_paused(stop.asked, session_seconds, 60 * settings.minutes)
                monitor.say(f"paused at step {step} after {reason}; the same command continues")
                break
            window_start += time.monotonic() - pause_start  # speed is the speed of training

            batch = next(batches)
            state, reading = train_step(state, on_devices(mesh, batch, rows, here))
            step, progress = step + 1, progress.after_batch(batch, step + 1, here.start)
            if previous is not None:
                check(previous, step - 1)  # waits for it: one step runs, one waits its turn, the device is never idle
            previous = reading
            monitor.advance()

            if step % settings.log_every == 0:
                sums, skipped = jax.device_get((state.sums, state.skipped))
                steps_per_second = (step - window_first_step) / (time.monotonic() - window_start)
                monitor.record(step, "train", readings(sums, skipped, step, last_step, steps_per_second, settings))
                state, window_first_step, window_start = after_log(state), step, time.monotonic()

            pause_start = time.monotonic()
            session_seconds = pause_start - session_start
            if jax.process_count() == 1 or step % settings.log_every == 0:  # to ask the others waits for the step
                stopping = of_any(bool(stop.asked) or 0 < 60 * settings.minutes < session_seconds)
            save_due = settings.save_every and step % settings.save_every == 0
            if stopping or save_due or step % settings.eval_every == 0 or step == last_step:
                check(reading, step)
                refuse_if_lost(run_dir)
                progress = replace(progress, seconds=earlier_seconds + session_seconds)
                save(run_dir, state, progress.noted())
                keep_only(run_dir, settings.keep, progress.best_step)
    leave_together()
    if stop.asked:
        sys.exit(128 + stop.asked)  # as shells do: what was to follow on a whole training does not


def prepare_run(config: RunConfig, run_dir: Path, newest: int | None) -> Prepared:
    """Check config and corpus against those of the run and of the other processes, then write both down."""
    if config.decoding.ensemble:
        raise UserError("decoding.ensemble is for runs that are trained: eval.py and scripts/translate.py take it")
    changed = [] if newest is None else accepted_changes(load_run_config(run_dir), config)
    prepared = prepare(config.data, config.tokenizer, config.training.seed, run_dir, config.allow_changes)
    refuse_difference("corpus or tokenizer", prepared.stream.fingerprint)
    if is_first():
        write_down(config, run_dir, newest, prepared, changed + prepared.changes)
    return prepared


def write_down(config: RunConfig, run_dir: Path, newest: int | None, prepared: Prepared, changed: list[str]) -> None:
    """What the run directory tells before the first step."""
    if newest is not None:
        rewind_records(run_dir, newest)
    if newest is not None and any("changes the training" in line for line in changed):
        keep_records(run_dir, newest)
    for line in changed:
        print(f"continuing {run_dir} with {line}", file=sys.stderr)
        append_line(run_dir / "log.txt", f"from step {newest} on: {line}")
    for folder in (run_dir, run_dir / "eval", run_dir / "held_out"):
        remove_leftovers(folder)
    prepared.save(run_dir)
    save_config(replace(config, allow_changes=False), run_dir / "config.yaml")
    write_atomically(run_dir / "environment.json", json.dumps(environment(), indent=1) + "\n")


def make_validation(
    config: RunConfig, prepared: Prepared, run_dir: Path, mesh: Mesh
) -> Callable[[TrainState, float, Monitor], float]:
    """``(state, minutes, monitor) → BLEU`` on the validation pairs, by the evaluator and the search of eval.py."""
    graphdef = build(config.model, prepared.tokenizer.vocab_size)
    loss_step = make_loss_step(graphdef, config.training.label_smoothing, mesh)
    batches = validation_batches(prepared.valid, prepared.tokenizer, config.data, prepared.stream.row_lengths)
    refuse_beyond_table(config.model, prepared.stream.row_lengths, batches)
    translator = Translator((config.model,), prepared.tokenizer, config.decoding, config.data.row_length)

    def validate(state: TrainState, minutes: float, monitor: Monitor) -> float:
        step, losses = int(state.step), mean_losses(mesh, loss_step, state.evaluated, batches)
        with jax.set_mesh(mesh):
            evaluation = evaluate(translator, (everywhere(mesh, state.evaluated),), prepared.valid)
        monitor.record(
            step,
            "valid",
            losses | {"bleu": evaluation.scores.bleu, "chrf": evaluation.scores.chrf, "minutes": minutes},
        )
        file, decoding = prepared.report.files.valid, config.decoding
        if is_first():
            write_report(run_dir, "valid", evaluation, step=step, file=file, decoding=decoding)
        for source, translation in list(zip(evaluation.sources, evaluation.translations, strict=True))[:3]:
            monitor.say(f"    {source} → {translation}")
        return evaluation.scores.bleu

    return validate


if __name__ == "__main__":
    main()
