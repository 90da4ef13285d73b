"""Compare runs on one test set: python scripts/compare.py BASE RUN [RUN …] [--set SET]

Prints BLEU and chrF of each, their differences from BASE with intervals and p-values, and where the systems differ: by
length of the source, and in single sentences. It translates nothing: it reads the sentences that eval.py wrote to
RUN/eval/SET.jsonl. The set is the run's own test set unless --set names another. Instead of a run, you can name any of
its reports, such as one of another checkpoint or search.

Runs that differ only in training.seed are one system; its score is their mean. The 95 % intervals and p-values
generalise to other seeds and other sentences together or, if no system has two runs, to other sentences for these two
runs. p-values are adjusted by Holm's method for the number of systems, and a system is better or worse if its p is
below 0.05. Other files that sweeps leave beside their runs are skipped, as in runs/sweeps/NAME/*.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from cli.command_line import Parser, output_file, write_and_print
from common.errors import UserError, exit_on_user_error
from evaluation.comparison.tables import describe
from experiment.evaluated_runs import compare_reported, read_reported
from experiment.sweep.cells import without_outputs

EXAMPLES = """examples:
  python scripts/compare.py runs/tatoeba-small runs/with-dropout-0.2
  python scripts/compare.py runs/base-1 runs/base-2 runs/new-1 runs/new-2 --json comparison.json
  python scripts/compare.py runs/tatoeba-small runs/tatoeba-small/eval/test-f14c2e0b.json
"""


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("BASE", help="a run directory, or a report in RUN/eval")
    parser.add_argument("RUN", nargs="+", help="others to compare with it")
    parser.add_argument("--set", default="test", metavar="SET", help="compare RUN/eval/SET.json (default: test)")
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write every figure")
    arguments = parser.parse_args()
    names = without_outputs([arguments.BASE, *arguments.RUN])
    if len(names) < 2:
        raise UserError(f"name two runs or more, not {', '.join(names) or 'what sweeps leave beside them'} alone")
    found = [read_reported(name, arguments.set) for name in names]
    comparison = compare_reported(found)
    figures = json.dumps(asdict(comparison), indent=2, ensure_ascii=False) + "\n"
    write_and_print(arguments.json, figures, describe(comparison))


if __name__ == "__main__":
    main()
