"""Train a translation Transformer: python train.py configs/NAME.yaml [key=value …].

The run lives in runs/NAME. The same command starts it, continues it where it stopped, or says that it is done.
"""

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

if __name__ == "__main__" and sys.platform == "linux" and "GLIBC_TUNABLES" not in os.environ:
    # On a CPU, XLA's buffers are fresh memory at every step, and asking the kernel for it in pages of 2 MB instead of
    # 4 kB makes a step 1.2 to 1.3 times faster. glibc reads this only when a process starts; this process starts again.
    os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    os.execv(sys.executable, sys.orig_argv)

import jax

from configs.command_line import command_line
from configs.load import differences, load_config, load_run_config, save_config, to_yaml
from configs.schema import RunConfig
from data.errors import UserError, exit_on_user_error
from data.files import write_atomically
from data.prepare import Prepared, prepare
from data.readers import SourceReport
from data.stream import prefetch, validation_batches
from evaluation.report import evaluate, write_report
from evaluation.translate import Translator
from model.transformer import build
from training.checkpoint import damaged_steps, good_steps, notes, remove_all_but, restore, save
from training.environment import environment
from training.monitor import Monitor
from training.optimizer import learning_rate
from training.preflight import choose_kernels, refuse_beyond_table
from training.state import Sums, TrainState, init_state, make_loss_step, make_train_step, zero_sums
from training.summary import summary

# What may change when a run continues: limits, what is told and kept, and how translations are searched.
MAY_CHANGE = (
    "training.steps:",
    "training.epochs:",
    "training.minutes:",
    "training.patience:",
    "training.log_every:",
    "training.eval_every:",
    "training.save_every:",
    "training.keep:",
    "model.kernel:",
    "data.prefetch:",
    "data.root:",
    "data.test:",
    "decoding.",
)


@dataclass(frozen=True)
class Progress:
    """What a run remembers beside its state; noted in every checkpoint."""

    best_bleu: float = -1.0
    best_step: int = 0
    stale: int = 0  # evaluations since the best
    seconds: float = 0.0  # in all sessions of the run

    def after_evaluation(self, step: int, bleu: float) -> "Progress":
        """Progress with one more BLEU in it."""
        if bleu > self.best_bleu:
            return replace(self, best_bleu=bleu, best_step=step, stale=0)
        return replace(self, stale=self.stale + 1)


def main() -> None:
    """Entry point."""
    path, overrides = command_line(__doc__ or "", "CONFIG", "an experiment, such as configs/tatoeba-small.yaml")
    with exit_on_user_error():
        config = load_config(path, overrides)
        try:
            print_plan(config) if config.dry_run else train(config)
        except KeyboardInterrupt:
            sys.exit("\ninterrupted: the same command continues from the last checkpoint")


def print_plan(config: RunConfig) -> None:
    """What ``dry_run=true`` shows."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly
    print(summary(config.model, config.training, config.data, config.tokenizer.vocab_size))
    print(f"run directory        {config.run_dir}\n\n{to_yaml(config)}", end="")


def train(config: RunConfig) -> None:
    """A whole run: data, model, restored state, then steps with visible ifs."""
    run_dir, settings = Path(config.run_dir), config.training
    refuse_other_experiment(config, run_dir)
    choose_kernels(config.model, (config.data.row_length,) * 2)  # or a UserError, before anything is written
    prepared = prepare(config.data, config.tokenizer, settings.seed, run_dir)
    save_config(config, run_dir / "config.yaml")
    write_atomically(run_dir / "environment.json", json.dumps(environment(), indent=1) + "\n")

    state, progress = start_or_restore(config, prepared.tokenizer.vocab_size, run_dir)
    step, last_step, earlier_seconds = int(state.step), find_last_step(config, prepared), progress.seconds
    monitor = Monitor(run_dir, step, last_step)
    train_step = make_train_step(build(config.model, prepared.tokenizer.vocab_size), settings)
    validate = make_validation(config, prepared, run_dir)
    batches = prefetch(prepared.stream, step, config.data.prefetch)
    session_start = window_start = time.monotonic()
    window_first_step = step
    monitor.say(f"{run_dir}: step {step} of {last_step} on {jax.devices()[0].device_kind}; {in_words(prepared)}")

    previous_loss = None
    while step < last_step and not is_exhausted(progress, settings.patience):
        state, loss = train_step(state, next(batches))
        if previous_loss is not None:
            previous_loss.block_until_ready()  # one step runs, one waits its turn: the device is never idle
        step, previous_loss = step + 1, loss
        monitor.advance()

        if step % settings.log_every == 0:
            steps_per_second = (step - window_first_step) / (time.monotonic() - window_start)
            values = readings(state.sums, steps_per_second, step, config)
            monitor.record(step, "train", values | {"minutes_left": (last_step - step) / steps_per_second / 60})
            state = state._replace(sums=zero_sums())
            window_first_step, window_start = step, time.monotonic()

        pause_start = time.monotonic()
        session_seconds = pause_start - session_start
        out_of_time = bool(settings.minutes) and session_seconds > 60 * settings.minutes
        evaluation_due = step % settings.eval_every == 0 or step == last_step
        if evaluation_due:
            bleu = validate(state, (earlier_seconds + session_seconds) / 60, monitor)
            progress = progress.after_evaluation(step, bleu)
        if evaluation_due or out_of_time or (settings.save_every and step % settings.save_every == 0):
            progress = replace(progress, seconds=earlier_seconds + time.monotonic() - session_start)
            save(run_dir, state, asdict(progress))
            remove_all_but(run_dir, {progress.best_step, *good_steps(run_dir)[-settings.keep :]})
        window_start += time.monotonic() - pause_start  # speed is the speed of training
        if out_of_time:
            monitor.say(f"paused at step {step} after {settings.minutes:g} minutes; the same command continues")
            break
    else:
        monitor.say(f"{run_dir} is complete at step {step}: BLEU {progress.best_bleu:.2f} at step {progress.best_step}")
    batches.close()
    monitor.close()


def refuse_other_experiment(config: RunConfig, run_dir: Path) -> None:
    """UserError when the run directory holds checkpoints of a config that trains another model."""
    if config.decoding.ensemble:
        raise UserError("decoding.ensemble is for runs that are trained: eval.py and scripts/translate.py take it")
    if not (run_dir / "checkpoints").exists():
        return
    changed = differences(load_run_config(run_dir), config)
    refused = [line for line in changed if not line.startswith(MAY_CHANGE)]
    if refused:
        raise UserError(f"{run_dir} was trained with another config ({'; '.join(refused)}); set run_dir=NEW_FOLDER")
    for line in changed:
        print(f"continuing {run_dir} with {line}", file=sys.stderr)


def in_words(prepared: Prepared) -> str:
    """The training data in a line."""
    dropped = ", ".join(f"{count} {reason}" for reason, count in prepared.report["dropped"].items() if count)
    sides = [
        f"{length} ({fill:.1%} real)"
        for length, fill in zip(prepared.report["row_lengths"].values(), prepared.report["fill"].values(), strict=True)
    ]
    return f"{prepared.stream.pairs:,} pairs (dropped: {dropped or 'none'}) in rows of {sides[0]} + {sides[1]} tokens"


def start_or_restore(config: RunConfig, vocab_size: int, run_dir: Path) -> tuple[TrainState, Progress]:
    """The newest good checkpoint's state, or the state before the first step."""
    state = init_state(config.model, config.training, vocab_size)
    steps, damaged = good_steps(run_dir), damaged_steps(run_dir)
    if damaged:
        told = f"{run_dir / 'checkpoints'} has damaged checkpoints: {', '.join(map(str, damaged))}"
        if not steps:
            raise UserError(f"{told}, and no good one; move them away to start the run anew")
        print(f"warning: {told}; continuing from step {steps[-1]}", file=sys.stderr)
    if not steps:
        return state, Progress()
    return restore(run_dir, steps[-1], state), Progress(**notes(run_dir, steps[-1]))


def find_last_step(config: RunConfig, prepared: Prepared) -> int:
    """The step at which the run is complete, by steps or by epochs, whichever comes first."""
    by_epochs = sum(prepared.stream.steps_in(epoch) for epoch in range(config.training.epochs)) or math.inf
    return int(min(config.training.steps or math.inf, by_epochs))


def is_exhausted(progress: Progress, patience: int) -> bool:
    """Early stopping: too many evaluations without a better BLEU."""
    return bool(patience) and progress.stale >= patience


def readings(sums: Sums, steps_per_second: float, step: int, config: RunConfig) -> dict[str, float]:
    """What a line of training metrics says; the one place where the loop waits for numbers from the device."""
    total = {name: float(value) for name, value in sums._asdict().items()}
    return {
        "loss": total["smoothed"] / total["target_tokens"],
        "cross_entropy": total["cross_entropy"] / total["target_tokens"],
        "gradient_norm": total["gradient_norm"] / total["steps"],
        "learning_rate": float(learning_rate(config.training)(step - 1)),
        "tokens_per_second": (total["source_tokens"] + total["target_tokens"]) / total["steps"] * steps_per_second,
        "target_tokens_per_second": total["target_tokens"] / total["steps"] * steps_per_second,
    }


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
