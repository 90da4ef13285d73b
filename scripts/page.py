"""Make a page that contains a model and runs it in a browser: python scripts/page.py RUN [RUN2] FILE.html

Type a sentence and see its translation, what every head of every layer attends to, and what changes if you remove a
head or set a weight. The page is one file, and needs neither a network nor this project. Two runs appear side by side.
docs/page.md shows what you can find with it.
"""

import sys
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import Parser, output_file
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from evaluation.faithfulness.heads import changes_without
from evaluation.page.pack import BITS, Cost, PackedRun, pack_run
from evaluation.page.page import render_live_page
from experiment.load_run import LoadedRun, load_run

ONE_MODEL = ["search=beam", "mbr=none", "candidates=0", "ensemble=[]"]
CHANGES = [f"decoding.{change}" for change in ONE_MODEL] + ["model.dtype=float32", "model.matmul_dtype=float32"]


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("RUN", nargs="+", type=Path, help="a run directory, such as runs/tatoeba-small; at most two")
    parser.add_argument("FILE", type=output_file, metavar="FILE.html", help="the page")
    of = "bits per weight, with a scale for each row if below 32 (default: %(default)s)"
    parser.add_argument("--bits", type=int, choices=BITS, default=8, help=of)
    heads = "also measure how much each head contributes: BLEU on the validation set without it, with greedy search"
    parser.add_argument("--heads", action="store_true", help=heads)
    named = "the checkpoint: best, latest, a step or the name of an average (default: %(default)s)"
    parser.add_argument("--checkpoint", metavar="NAME", default="best", help=named)
    arguments = parser.parse_args()
    if len(arguments.RUN) > 2:
        raise UserError(f"a page holds one run or two, not {len(arguments.RUN)}")
    changes = [*CHANGES, f"decoding.checkpoint={arguments.checkpoint}"]
    runs = [load_run(run_dir, changes, "page.py") for run_dir in arguments.RUN]
    page = render_live_page([pack(run, arguments.bits, arguments.heads) for run in runs])
    write_atomically(arguments.FILE, page)
    print(f"written  {arguments.FILE}: {len(page.encode()) / 1e6:.1f} MB")


def pack(run: LoadedRun, bits: int, with_heads: bool) -> PackedRun:
    """The run as the page contains it, in each of its directions."""
    directions = [(data.source, data.target) for data in run.saved.data.directions]
    translators = [replace(run.translator, source=source, target=target) for source, target in directions]
    costs = costs_of_heads(run) if with_heads else []
    kind, name = run.saved.tokenizer.type, run.folder.resolve().name
    return pack_run(name, translators, kind, run.params[0], bits, costs)


def costs_of_heads(run: LoadedRun) -> list[Cost]:
    """UserError for a run without a report on its validation set."""
    greedy = replace(run.translator, decoding=replace(run.translator.decoding, beam_size=1))
    found = changes_without(greedy, run.params[0], *run.validated())
    return [Cost(head, change.value, (change.interval.high - change.interval.low) / 2) for head, change in found]


if __name__ == "__main__":
    main()
