"""Train a translation Transformer: python train.py configs/NAME.yaml [key=value …].

The run lives in runs/NAME. The same command starts it, resumes it where it stopped, or reports that it is complete.
"""

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    from cli.process import prepare_process

    prepare_process()

import jax

from cli.command_line import parse_command_line
from common.errors import exit_on_user_error, explain_lack_of_memory
from common.signals import exit_at_once, exit_when_interrupted
from configs.load import to_yaml
from configs.schema import RunConfig
from experiment.load_run import load_experiment
from experiment.open_run import Run, check_config, check_run, find_devices, open_run
from experiment.plan import describe_plan
from training.devices.distributed import end_all_on_error, is_first, join_processes, leave_processes
from training.devices.preflight import dry_run_summary
from training.progress import Progress, training_metrics
from training.run.checkpoint import update_notes
from training.run.lock import check_not_lost, lock_run
from training.run.retention import delete_old_checkpoints
from training.state import TrainState, reset_sums


def main() -> None:
    arguments = parse_command_line(__doc__, {"CONFIG": "a config file, such as configs/tatoeba-small.yaml"})
    advice = "the same command continues from the last checkpoint"
    smaller = "make data.batch_rows, data.row_length or the model smaller, or training.accumulation larger"
    memory = f"{smaller}; dry_run=true shows how much memory a training step takes"
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
    """Print the report of ``dry_run=true``; does not create a run."""
    devices = find_devices(config)
    check_config(config)
    if is_first():
        print(dry_run_summary(config.model, config.training, config.data, config.tokenizer.vocab_size, devices))
        print(describe_plan(config))
        print(f"run directory        {config.run_dir}\n\n{to_yaml(config)}", end="")


def train(config: RunConfig) -> None:
    """Start or resume a run and train until it is complete or paused, holding the lock of its directory."""
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
    state, progress, step = run.state, run.progress, int(run.state.step)
    if run.schedule.must_evaluate(step, progress):
        progress = validate(run, state, progress)
    with closing(run.batches(from_step=step)) as batches:
        while not run.schedule.is_complete(step, progress):
            batch, digest = next(batches)
            state, report = run.train_step(state, batch)
            step, progress = step + 1, progress.after_batch(digest)
            run.watch(step, report)
            due = run.schedule.at(step, progress, run.pause)
            if due.log:
                state = log(run, state, step)
            if due.save:
                progress = save(run, state, progress)
            if due.evaluate:
                progress = validate(run, state, progress)
            if due.pause:
                break
    run.saves.wait()
    if run.schedule.is_complete(step, progress):
        best = f": BLEU {progress.best_bleu:.2f} at step {progress.best_step}" if progress.best_bleu >= 0 else ""
        run.monitor.say(f"{run.directory} is complete at step {step}{best}")
    else:
        run.monitor.say(f"paused at step {step} after {run.pause}; the same command continues")
    return run.pause.signal


def log(run: Run, state: TrainState, step: int) -> TrainState:
    """Record one line of metrics for the steps since the previous line; returns the state with its sums reset."""
    sums, skipped = jax.device_get((state.sums, state.skipped))  # waits for the step, before the clock is read
    speed = run.clock.steps_per_second(step)
    last_step = run.schedule.expected_end(step)
    check_not_lost(run.directory)  # if another process has taken the lock, this line must not end up in its log
    run.monitor.record(step, "train", training_metrics(sums, skipped, step, last_step, speed, run.config.training))
    run.divergence.wait()
    return reset_sums(state)


def save(run: Run, state: TrainState, progress: Progress) -> Progress:
    """Start writing a checkpoint atomically in the background; returns the progress recorded in it."""
    run.divergence.wait()  # no checkpoint after too many non-finite updates
    with run.clock.not_training():
        check_not_lost(run.directory)
        progress = replace(progress, seconds=run.clock.run_seconds)
        run.saves.start(state, progress)
        run.clock.saved()
    return progress


def validate(run: Run, state: TrainState, progress: Progress) -> Progress:
    """Evaluate a saved state and record the evaluation in its checkpoint; returns the new progress."""
    with run.clock.not_training():
        run.saves.wait()
        with run.pause.interruptible():  # everything is saved, so any signal, even an earlier one, ends the program
            bleu, loss = run.validation.evaluate(state, progress.seconds / 60, run.monitor)
        step = int(state.step)
        progress = progress.after_evaluation(step, bleu, loss)
        update_notes(run.directory, step, progress.to_notes())
        delete_old_checkpoints(run.directory, run.config.training.keep, progress.best_step)
    return progress


if __name__ == "__main__":
    with exit_at_once():
        main()
