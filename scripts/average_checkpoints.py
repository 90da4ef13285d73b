"""Average the parameters of a run's checkpoints: python scripts/average_checkpoints.py RUN --last N | --best N.

The mean of a run's last checkpoints often translates better than any of them, and just as fast (Vaswani et al. 2017,
section 6.1, averaged 5 or 20). If the run keeps an exponential moving average of its parameters, the script averages
that. The result is RUN/averages/NAME; every program here accepts it as decoding.checkpoint=NAME. training.keep sets how
many checkpoints a run keeps, and training.save_every how often it saves one between evaluations.
"""

import shlex
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from cli.command_line import Parser
from common.errors import exit_on_user_error, write_note
from experiment.curves import find_breaks
from experiment.load_run import load_run
from training.run.averaging import By, choose_steps, read_validated, write_average
from training.run.retention import damaged_steps, good_steps

EXAMPLES = """example:
  python train.py configs/tatoeba-small.yaml training.ema_decay=0 training.save_every=310 training.keep=5
  python scripts/average_checkpoints.py runs/tatoeba-small --last 5
  python eval.py runs/tatoeba-small decoding.checkpoint=last-5
"""


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("RUN", help="a run directory, such as runs/tatoeba-small")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--last", type=int, metavar="N", help="the last N checkpoints")
    best = "the N checkpoints with the best validation BLEU since the set or the search changed; ties: the lower loss"
    which.add_argument("--best", type=int, metavar="N", help=best)
    arguments = parser.parse_args()
    by: By = "best" if arguments.last is None else "last"
    average_checkpoints(Path(arguments.RUN), by, arguments.best if arguments.last is None else arguments.last)


def average_checkpoints(run_dir: Path, by: By, count: int) -> None:
    """Choose the steps, save their mean, and print which steps it averages and how to use it."""
    run, name = load_run(run_dir), f"{by}-{count}"
    good, validated = good_steps(run_dir), read_validated(run_dir)
    evaluated = sorted(validated)
    first = max(find_breaks(run_dir, evaluated), default=0)
    if by == "best" and first:
        write_note(f"note: scores up to step {evaluated[first - 1]}, of another search or set, do not count")
    validated = {step: validated[step] for step in evaluated[first:]}
    steps = choose_steps(run_dir, good, count, by, validated, run.saved.training)
    bleu = {step: each.bleu for step, each in validated.items()}
    model, vocab_size = run.config.model, run.tokenizer.vocab_size
    folder = write_average(run_dir, steps, name, by=by, bleu=bleu, config=model, vocab_size=vocab_size)
    for step in damaged_steps(run_dir):
        write_note(f"note: the checkpoint at step {step} is damaged and left out")
    for step in good:
        if by == "best" and step not in evaluated:
            write_note(f"note: metrics.jsonl has no validation BLEU for step {step}, which is left out")
    for step in steps:
        print(f"step {step:>6}" + (f"  BLEU {bleu[step]:.2f}" if step in bleu else ""))
    print(f"written  {folder}")
    print(f"use it   python eval.py {shlex.quote(str(run_dir))} decoding.checkpoint={name}")


if __name__ == "__main__":
    main()
