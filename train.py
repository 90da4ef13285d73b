"""Train a translation Transformer: python train.py configs/NAME.yaml [key=value …].

The run lives in runs/NAME. The same command starts it, continues it where it stopped, or says that it is done.
"""

import json
import math
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from training.process import prepare_process

if __name__ == "__main__":
    prepare_process()

import jax

from configs.changes import accepted_changes
from configs.command_line import command_line
from configs.load import load_config, load_run_config, save_config, to_yaml
from configs.schema import RunConfig
from data.errors import UserError, exit_on_user_error
from data.files import append_line, remove_leftovers, write_atomically
from data.prepare import Prepared, prepare
from data.readers import SourceReport
from data.stream import prefetch, validation_batches
from evaluation.report import evaluate, write_report
from evaluation.translate import Translator
from model.transformer import build
from training.checkpoint import find_newest, keep_only, note, notes, restore, save
from training.compilation import recompilations_told
from training.environment import environment
from training.history import keep_records, rewind_records
from training.interruption import exit_when_interrupted, noted
from training.lock import locked, refuse_if_lost
from training.monitor import Monitor
from training.preflight import choose_kernels, refuse_beyond_table
from training.progress import Progress, readings, refuse_divergence
from training.state import TrainState, after_log, init_state, make_loss_step, make_train_step
from training.summary import summary


def main() -> None:
    """Entry point."""
    path, overrides = command_line(__doc__ or "", "CONFIG", "an experiment, such as configs/tatoeba-small.yaml")
    with exit_on_user_error(), exit_when_interrupted("the same command continues from the last checkpoint"):
        config = load_config(path, overrides)
        print_plan(config) if config.dry_run else train(config)


def print_plan(config: RunConfig) -> None:
    """What ``dry_run=true`` shows."""
    print(summary(config.model, config.training, config.data, config.tokenizer.vocab_size))
    print(f"run directory        {config.run_dir}\n\n{to_yaml(config)}", end="")


def train(config: RunConfig) -> None:
    """A whole run, held against other processes: data, restored state, steps."""
    run_dir = Path(config.run_dir)
    choose_kernels(config.model, (config.data.row_length,) * 2)  # or a UserError, before anything is written
    with locked(run_dir):
        newest = find_newest(run_dir)
        prepared = prepare_run(config, run_dir, newest)
        state, progress = init_state(config.model, config.training, prepared.tokenizer.vocab_size), Progress()
        if newest is not None:
            state, progress = restore(run_dir, newest, state), Progress(**notes(run_dir, newest))
        take_steps(config, prepared, run_dir, state, progress)


def take_steps(config: RunConfig, prepared: Prepared, run_dir: Path, state: TrainState, progress: Progress) -> None:
    """Steps with visible ifs: log, save, evaluate, stop."""
    settings, step, last_step = config.training, int(state.step), find_last_step(config, prepared)
    train_step = make_train_step(build(config.model, prepared.tokenizer.vocab_size), settings)
    check = partial(refuse_divergence, limit=settings.max_skipped, stream=prepared.stream, run_dir=run_dir)
    validate = make_validation(config, prepared, run_dir)
    evaluated, earlier_seconds, session_start = progress.evaluated == step, progress.seconds, time.monotonic()
    with (
        closing(prefetch(prepared.stream, step, config.data.prefetch)) as batches,
        closing(Monitor(run_dir, step, last_step, evaluated=evaluated)) as monitor,
        recompilations_told("train_step", lambda seconds: monitor.say(recompiled(step + 1, seconds))),
        noted() as stop,
    ):
        device = jax.devices()[0].device_kind
        monitor.say(f"{run_dir}: step {step} of {last_step} on {device}; {in_words(prepared)}")
        window_first_step, window_start = step, time.monotonic()
        previous, stopping, pause_start = None, False, time.monotonic()
        while True:
            evaluation_due = step % settings.eval_every == 0 or step == last_step
            if evaluation_due and progress.evaluated < step:
                with stop.at_once():  # all is saved: the restart evaluates
                    bleu = validate(state, progress.seconds / 60, monitor)
                progress = progress.after_evaluation(step, bleu)
                note(run_dir, step, asdict(progress))
                keep_only(run_dir, settings.keep, progress.best_step)
            if step >= last_step or progress.is_exhausted(settings.patience):
                best = f"BLEU {progress.best_bleu:.2f} at step {progress.best_step}"
                monitor.say(f"{run_dir} is complete at step {step}: {best}")
                break
            if stopping:
                reason = signal.Signals(stop.asked).name if stop.asked else f"{settings.minutes:g} minutes"
                monitor.say(f"paused at step {step} after {reason}; the same command continues")
                break
            window_start += time.monotonic() - pause_start  # speed is the speed of training

            batch = next(batches)
            state, reading = train_step(state, batch)
            step, progress = step + 1, progress.after_batch(batch)
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
            stopping = bool(stop.asked) or 0 < 60 * settings.minutes < session_seconds
            save_due = settings.save_every and step % settings.save_every == 0
            if stopping or save_due or step % settings.eval_every == 0 or step == last_step:
                check(reading, step)
                refuse_if_lost(run_dir)
                progress = replace(progress, seconds=earlier_seconds + session_seconds)
                save(run_dir, state, asdict(progress))
                keep_only(run_dir, settings.keep, progress.best_step)
    if stop.asked:
        sys.exit(128 + stop.asked)  # as shells do: what was to follow on a whole training does not


def recompiled(step: int, seconds: float) -> str:
    """The line on a training step that was compiled again."""
    return f"step {step}: the training step was compiled again, in {seconds:.1f} s: its inputs are not as they were"


def prepare_run(config: RunConfig, run_dir: Path, newest: int | None) -> Prepared:
    """Check config and corpus against those of the run, then write both down with what else the run ran on."""
    if config.decoding.ensemble:
        raise UserError("decoding.ensemble is for runs that are trained: eval.py and scripts/translate.py take it")
    changed = [] if newest is None else accepted_changes(load_run_config(run_dir), config)
    prepared = prepare(config.data, config.tokenizer, config.training.seed, run_dir, config.allow_changes)
    changed += prepared.changes
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
    return prepared


def in_words(prepared: Prepared) -> str:
    """The training data in a line."""
    dropped = ", ".join(f"{count} {reason}" for reason, count in prepared.report["dropped"].items() if count)
    sides = [
        f"{length} ({fill:.1%} real)"
        for length, fill in zip(prepared.report["row_lengths"].values(), prepared.report["fill"].values(), strict=True)
    ]
    return f"{prepared.stream.pairs:,} pairs (dropped: {dropped or 'none'}) in rows of {sides[0]} + {sides[1]} tokens"


def find_last_step(config: RunConfig, prepared: Prepared) -> int:
    """The step at which the run is complete, by steps or by epochs, whichever comes first."""
    by_epochs = sum(prepared.stream.steps_in(epoch) for epoch in range(config.training.epochs)) or math.inf
    return int(min(config.training.steps or math.inf, by_epochs))


def make_validation(
    config: RunConfig, prepared: Prepared, run_dir: Path
) -> Callable[[TrainState, float, Monitor], float]:
    """``(state, minutes, monitor) → BLEU`` on the validation pairs, by the evaluator and the search of eval.py."""
    loss_step = make_loss_step(build(config.model, prepared.tokenizer.vocab_size), config.training.label_smoothing)
    batches = validation_batches(prepared.valid, prepared.tokenizer, config.data, prepared.stream.row_lengths)
    refuse_beyond_table(config.model, prepared.stream.row_lengths, batches)
    translator = Translator((config.model,), prepared.tokenizer, config.decoding, config.data.row_length)

    def validate(state: TrainState, minutes: float, monitor: Monitor) -> float:
        step = int(state.step)
        losses = [loss_step(state.evaluated, batch) for batch in batches]
        tokens = sum(float(loss.tokens) for loss in losses)
        evaluation = evaluate(translator, (state.evaluated,), prepared.valid)
        monitor.record(
            step,
            "valid",
            {
                "loss": sum(float(loss.smoothed) for loss in losses) / tokens,
                "cross_entropy": sum(float(loss.cross_entropy) for loss in losses) / tokens,
                "bleu": evaluation.scores.bleu,
                "chrf": evaluation.scores.chrf,
                "minutes": minutes,
            },
        )
        file, decoding = SourceReport(**prepared.report["files"]["valid"][0]), config.decoding
        write_report(run_dir, "valid", evaluation, step=step, file=file, decoding=decoding)
        for source, translation in list(zip(evaluation.sources, evaluation.translations, strict=True))[:3]:
            monitor.say(f"    {source} → {translation}")
        return evaluation.scores.bleu

    return validate


if __name__ == "__main__":
    main()
