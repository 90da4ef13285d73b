"""Train a translation Transformer: python train.py configs/NAME.yaml [key=value …].

The run lives in runs/NAME. The same command starts it, continues it where it stopped, or says that it is complete.
"""

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

import jax

from cli.command_line import parse_command_line
from common.errors import exit_on_user_error, explain_lack_of_memory
from common.signals import exit_when_interrupted
from configs.load import to_yaml
from configs.schema import RunConfig
from data.batches.packing import Batch
from data.batches.stream import prefetch
from experiment.load_experiment import load_experiment
from experiment.open_run import Run, check_run, find_devices, open_run
from training.devices.compilation import report_compilations
from training.devices.distributed import end_all_on_error, is_first, join_processes, leave_processes
from training.devices.preflight import dry_run_summary
from training.progress import DivergenceCheck, Progress, digest_batch, training_metrics
from training.run.checkpoint import update_notes
from training.run.checkpoints import delete_old_checkpoints
from training.run.lock import check_not_lost, lock_run
from training.run.pause import Pause, pausing
from training.state import TrainState, reset_sums
from training.step import StepArguments


def main() -> None:
    arguments = parse_command_line(__doc__, {"CONFIG": "a config file, such as configs/tatoeba-small.yaml"})
    advice = "the same command continues from the last checkpoint"
    memory = (
        "make data.batch_rows, data.row_length or the model smaller, or training.accumulation larger; dry_run=true "
        "shows how much memory a training step takes"
    )
    with (
        end_all_on_error(advice),
        exit_on_user_error(),
        explain_lack_of_memory(memory),
        exit_when_interrupted(advice),
    ):
        config = load_experiment("train.py", arguments.CONFIG, arguments.overrides)
        join_processes(config.mesh)
        print_dry_run(config) if config.dry_run else train(config)


def print_dry_run(config: RunConfig) -> None:
    """What ``dry_run=true`` shows."""
    devices = find_devices(config)
    if is_first():
        print(dry_run_summary(config.model, config.training, config.data, config.tokenizer.vocab_size, devices))
        print(f"run directory        {config.run_dir}\n\n{to_yaml(config)}", end="")


def train(config: RunConfig) -> None:
    """Start or continue a run, under the lock of its directory, until it is complete or paused."""
    devices = find_devices(config)
    check_run(config)
    with lock_run(Path(config.run_dir)), open_run(config, devices) as run:
        signal = take_steps(run)
    leave_processes()
    if signal:
        sys.exit(128 + signal)  # as shells do, so that `train && eval` stops


def take_steps(run: Run) -> int:
    """The training loop. Returns the number of the signal that paused it, or 0.

    A kill at any point loses only the steps since the last save. Each evaluation comes right after a save and is
    recorded in that checkpoint, so a run that is killed during an evaluation repeats only the evaluation.
    """
    settings, stream = run.config.training, run.stream
    state, progress, step = run.state, run.progress, int(run.state.step)
    divergence = DivergenceCheck(settings.max_skipped, stream, run.directory)

    def due(every: int) -> bool:
        return every > 0 and step % every == 0

    def prepare(step: int, batch: Batch) -> tuple[Batch, int]:
        """The batch on its devices, ahead of its step, and its digest."""
        devices = run.devices
        return devices.place(batch), digest_batch(batch, step + 1, devices.local_rows.start, devices.counted_rows)

    def evaluation_due() -> bool:
        return (due(settings.eval_every) or step >= run.last_step) and progress.evaluated < step  # never at step 0

    with (
        closing(prefetch(stream, step, run.config.data.prefetch, run.devices.local_rows, prepare)) as batches,
        pausing(run.clock, settings.minutes, settings.save_minutes, settings.log_every) as pause,
        report_compilations(
            "train_step",
            run.compiled_for,
            lambda: StepArguments(state, batch),
            lambda line: run.monitor.say(f"step {step + 1}: {line}"),
        ),
    ):
        run.clock.start_window(step)
        if evaluation_due():
            progress = validate(run, state, progress, pause)
        while step < run.last_step and not progress.is_exhausted(settings.patience):
            batch, digest = next(batches)
            state, reading = run.train_step(state, batch)
            step, progress = step + 1, progress.after_batch(digest)
            divergence.add(step, reading)
            run.saves.check()
            run.monitor.advance()

            if due(settings.log_every):
                state = log(run, state, step)
                divergence.wait()
            paused = pause.is_due(step)
            if paused or due(settings.save_every) or evaluation_due() or pause.save_is_due(step):
                divergence.wait()  # no checkpoint after too many updates that were not finite
                progress = save(run, state, progress)
            if evaluation_due():
                progress = validate(run, state, progress, pause)
            if paused:
                break
        run.saves.wait()
        if step >= run.last_step or progress.is_exhausted(settings.patience):
            run.monitor.say(f"{run.directory} is complete at step {step}{describe_best(progress)}")
        else:
            run.monitor.say(f"paused at step {step} after {pause}; the same command continues")
    return pause.signal


def describe_best(progress: Progress) -> str:
    return f": BLEU {progress.best_bleu:.2f} at step {progress.best_step}" if progress.best_bleu >= 0 else ""


def log(run: Run, state: TrainState, step: int) -> TrainState:
    """Record one line of metrics for the steps since the previous line; returns the state with its sums at zero."""
    sums, skipped = jax.device_get((state.sums, state.skipped))  # waits for the step, before the clock is read
    speed = run.clock.steps_per_second(step)
    run.monitor.record(step, "train", training_metrics(sums, skipped, step, run.last_step, speed, run.config.training))
    return reset_sums(state)


def save(run: Run, state: TrainState, progress: Progress) -> Progress:
    """Begin to write a checkpoint, whole or not at all, in the background; returns the progress recorded in it."""
    with run.clock.not_training():
        check_not_lost(run.directory)
        progress = replace(progress, seconds=run.clock.run_seconds)
        run.saves.start(state, progress)
        run.clock.saved()
    return progress


def validate(run: Run, state: TrainState, progress: Progress, pause: Pause) -> Progress:
    """Evaluate a state once it is saved, and record the evaluation in its checkpoint; returns the new progress."""
    with run.clock.not_training():
        run.saves.wait()
        with pause.interruptible():  # a signal, even one received during the step, ends the program: all is saved
            bleu, loss = run.validation.evaluate(state, progress.seconds / 60, run.monitor)
        step = int(state.step)
        progress = progress.after_evaluation(step, bleu, loss)
        update_notes(run.directory, step, progress.to_notes())
        delete_old_checkpoints(run.directory, run.config.training.keep, progress.best_step)
    return progress


if __name__ == "__main__":
    main()
