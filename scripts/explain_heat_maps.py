"""Test what attention heat maps mean: python scripts/explain_heat_maps.py RUN [RUN …]

For sentences of the validation set, the script erases each source word in turn and measures how much log-probability
each word of the model's translation loses. It compares these effects with heat maps: the weights of each layer and head
of encoder-decoder attention, weights times norms, rollout, and gradient times input. Then it removes one head at a time
and translates the validation set again, greedily. Prints tables, and draws them to the file of --output.

Runs are read, not changed. Name several seeds of a config to see what holds for more than one model.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import Parser, output_file, positive_integer
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from common.text_table import as_text
from evaluation.faithfulness.erasure import FEWEST_WORDS
from evaluation.faithfulness.findings import Findings, agreement, draw, find, heads
from evaluation.faithfulness.heads import heads_of
from experiment.load_run import LoadedRun, load_run

# One model and greedy search, because the search matters little here; float32, because the effects are small.
GREEDY = ["search=beam", "beam_size=1", "mbr=none", "candidates=0", "ensemble=[]"]
CHANGES = [f"decoding.{change}" for change in GREEDY] + ["model.dtype=float32", "model.matmul_dtype=float32"]


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("RUN", nargs="+", type=Path, help="a run directory; several are seeds of one config")
    of = f"number of sentences in which to erase words, each of at least {FEWEST_WORDS} words (default: %(default)s)"
    parser.add_argument("--sentences", type=positive_integer, default=300, metavar="N", help=of)
    parser.add_argument("--output", type=output_file, metavar="FILE.png", help="draw the tables to this file")
    arguments = parser.parse_args()
    runs = [load_run(run_dir, CHANGES, "explaining its heat maps") for run_dir in arguments.RUN]
    for run in runs:
        if run.config.model.head_gates:
            raise UserError(f"{run.folder} has model.head_gates, which weights and norms ignore")
        if heads_of(run.config.model) != heads_of(runs[0].config.model):
            raise UserError(f"{run.folder} and {runs[0].folder} differ in layers or heads: explain each by itself")
    found = [study_run(run, arguments.sentences) for run in runs]
    print(as_text(agreement(found)), as_text(heads(found)), sep="\n\n")
    if arguments.output:
        write_atomically(arguments.output, draw(found))
        print(f"\nwritten  {arguments.output}")


def study_run(run: LoadedRun, count: int) -> Findings:
    """UserError for a run without a report on its validation set, or without sentences that are long enough."""
    found = find(str(run.folder), run.translator, run.params[0], *run.validated(), count)
    if found is None:
        raise UserError(f"{run.folder} has no sentence of {FEWEST_WORDS} words in its validation set")
    return found


if __name__ == "__main__":
    main()
