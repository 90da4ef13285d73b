"""Draw learning curves of runs: python scripts/plot_curves.py RUN [RUN …]

On the left BLEU on the validation set, on the right cross-entropy on the validation set and, as a thin line, of
training. The curves are drawn against minutes of training and evaluation, in all sessions of a run and without the
time between them. To compare runs from different machines, or from one that did other work, too, use --updates.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from cli.command_line import Parser, output_file
from common.errors import exit_on_user_error
from common.files import write_atomically
from common.pictures import LEFT_OUT, picture
from experiment.curves import draw_curves, read_curves
from experiment.sweep.cells import without_outputs

EXAMPLES = """examples:
  python scripts/plot_curves.py runs/tatoeba-small
  python scripts/plot_curves.py runs/with-simcut runs/without --updates --output curves.pdf
"""


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("RUN", nargs="+", help="run directories, also of runs that go on")
    parser.add_argument("--updates", action="store_true", help="draw against updates instead of minutes")
    help = "a file that ends in .png, .svg or .pdf (default: curves.png in the first run)"
    parser.add_argument("--output", type=picture_file, metavar="FILE", help=help)
    arguments = parser.parse_args()
    runs = list(map(Path, without_outputs(arguments.RUN) or arguments.RUN))
    draw = partial(draw_curves, [read_curves(run) for run in runs], by_updates=arguments.updates)
    path = arguments.output or runs[0] / "curves.png"
    write_atomically(path, picture(draw, path.suffix[1:], "".join(map(str, runs)), dpi=130, facecolor="white"))
    print(f"written  {path}")


def picture_file(text: str) -> Path:
    path = output_file(text)
    if path.suffix[1:] not in LEFT_OUT:
        raise argparse.ArgumentTypeError(f"{text} must end in .png, .svg or .pdf")
    return path


if __name__ == "__main__":
    main()
