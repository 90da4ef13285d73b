"""Write a report on runs as one page for a browser: python scripts/report.py RUN [RUN …]

The page shows what was trained on which data, learning curves, every score with its signature and interval, BLEU by
length, all sentences of a test set with their differences from the references, the attention of some of them, the data
card, settings and environment, and the commands to reproduce it. For several runs, it shows their curves in one plot
and compares all runs with the first. It needs no other file and no network.

Runs may still be in training. A folder, such as runs/sweeps/NAME, means all runs in it. The sentences are those of
RUN/eval/test.json or, if no run has that yet, of the last validation.
"""

import shlex
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import Parser, output_file
from common.errors import exit_on_user_error
from common.files import write_atomically
from experiment.report.page import render_report
from experiment.report.runs import find_runs, read_runs
from experiment.sweep.cells import without_outputs

EXAMPLES = """examples:
  python scripts/report.py runs/tatoeba-small
  python scripts/report.py runs/base runs/with-simcut --output report.html
"""


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("RUN", nargs="+", help="run directories, or folders of them; the first run is the baseline")
    parser.add_argument("--set", metavar="SET", help="show the sentences of RUN/eval/SET.json (default: test)")
    attention = "number of sentences of the first run to show attention for (default: %(default)s)"
    parser.add_argument("--attention", type=int, choices=range(21), default=3, metavar="N", help=attention)
    output = "the page (default: report.html in the first RUN)"
    parser.add_argument("--output", type=output_file, metavar="FILE.html", help=output)
    arguments = parser.parse_args()
    set_name, runs = read_runs(find_runs(arguments.RUN), arguments.set)
    page = render_report(runs, set_name, arguments.attention, shlex.join(["python", *sys.argv]))
    path = arguments.output or Path(without_outputs(arguments.RUN)[0]) / "report.html"
    write_atomically(path, page)
    print(f"written  {path}")


if __name__ == "__main__":
    main()
