"""Translate and score a held-out set with a trained run: python eval.py RUN [key=value …].

The set is the run's test set, or any file of sentence pairs with data.test=PATH. The report is also written to RUN/eval
or the --output folder. The score with the run's own settings goes to test.json; every other set or search gets its own
name, so that no report replaces another. A run trained in both directions (data.direction=both) is scored from its
data.source; swap the two languages, as in data.source=es data.target=en, to score the reverse direction.
"""

import argparse
import os
from pathlib import Path

if __name__ == "__main__":
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import add_output, offer_output, parse_command_line
from common.errors import exit_on_user_error
from data.pairs import count_one_sided
from evaluation.printed import print_near, print_noised, print_scores
from experiment.evaluate_run import MAY_CHANGE_FOR_SCORES, EvaluatedSet, evaluate_run, keep_report
from experiment.load_run import load_run
from training.run.layout import REPORTS


@exit_on_user_error()
def main() -> None:
    """Write the report before printing anything, and print the scores even if writing fails."""
    positionals = {"RUN": "a run directory, such as runs/tatoeba-small"}
    arguments = parse_command_line(__doc__, positionals, add_options, MAY_CHANGE_FOR_SCORES)
    run = load_run(Path(arguments.RUN), arguments.overrides, "eval.py", MAY_CHANGE_FOR_SCORES)
    found = evaluate_run(run, with_noise=arguments.robust)
    folder = arguments.output or run.folder / REPORTS
    try:
        with offer_output(folder):
            path = keep_report(run, found, folder)
    finally:
        print(f"{run.folder} at step {run.manifest.step} on {os.path.relpath(found.file.file)}")
        print_evaluation(found)
    print(f"\nwritten   {path}, .jsonl and .translations.txt")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "RUN/eval")
    explanation = "also score a copy of the set with a typo, changed case and changed punctuation in each source"
    parser.add_argument("--robust", action="store_true", help=explanation)


def print_evaluation(found: EvaluatedSet) -> None:
    """Print the scores, warnings about them, and the first few translations."""
    pairs, file, evaluation, (overlap, near, noised) = found
    print_scores(evaluation, file)
    if noised:
        print_noised(noised, evaluation)
    if one_sided := count_one_sided(pairs):
        print(f"one-sided {one_sided} of these rows have text on one side only")
    print(f"overlap   {overlap[0]} sources and {overlap[1]} targets of this set are among the training sentences")
    if near:
        print_near(near)
    if evaluation.in_pieces:
        print(f"in pieces {evaluation.in_pieces} sources, with more sentences or tokens than those in training")
    if evaluation.unended:
        print(f"unended   {evaluation.unended} translations were cut at their limit, decoding.max_length_*")
    for each in evaluation.sentences[:5]:
        print(f"\nsource       {each.source}\ntranslation  {each.translation}")
        print(f"reference    {each.references[0]}", flush=True)


if __name__ == "__main__":
    main()
