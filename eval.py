"""Translate and score a held-out set with a trained run: python eval.py RUN [key=value …].

The set is the run's test set, or any file of pairs with data.test=PATH. The report is also written to RUN/eval, or to
the folder of --output: the run's own score, with nothing changed, as test.json, and every other set or search under a
name of its own, so that none replaces another. A run of both directions (data.direction=both) is scored from its
data.source; with both exchanged, as data.source=es data.target=en, it is scored in the reverse direction.
"""

import argparse
import os
from pathlib import Path

if __name__ == "__main__":
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import add_output, offer_output, parse_command_line
from common.errors import UserError, exit_on_user_error, write_note
from common.option import select
from data.config import DataConfig
from data.corpus.language import advise
from data.corpus.warnings import find_source_warnings
from data.noise import noised_pairs
from data.pairs import Pairs, count_one_sided
from data.sources.report import SourceReport
from evaluation.evaluate import Evaluation, evaluate
from evaluation.neighbours import Neighbours, find_neighbours
from evaluation.printed import print_near, print_noised, print_scores
from evaluation.report import Checkpoint, Notes, write_report
from experiment.load_run import MAY_CHANGE, LoadedRun, load_run
from experiment.reports import place_report, recorded_test_set
from training.run.corpus import load_held_out, overlap_with_training
from training.run.layout import DATA, REPORTS

TEST_SET = {f"data.{key}" for key in ("root", "test", "max_malformed", *select(DataConfig(), "of_file"))}


@exit_on_user_error()
def main() -> None:
    """Write the report before anything is printed, and print the scores whatever becomes of it."""
    positionals, accepted = {"RUN": "a run directory, such as runs/tatoeba-small"}, MAY_CHANGE | TEST_SET
    arguments = parse_command_line(__doc__, positionals, add_options, accepted)
    run = load_run(Path(arguments.RUN), arguments.overrides, "eval.py", accepted)
    pairs, file = load_test_set(run)
    overlap = count_overlap(run, pairs)  # first: it finds damage in the run
    evaluation = evaluate(run.translator, run.params, pairs, set_name=file.file, progress=True)
    near = find_near(run, pairs, evaluation)
    noised = evaluate(run.translator, run.params, noised_pairs(pairs), progress=True) if arguments.robust else None
    notes = Notes(overlap, near, noised)
    folder = arguments.output or run.folder / REPORTS
    try:
        with offer_output(folder):
            place = place_report(run, file.sha256, folder)
            path = place.choose()
            checkpoint = Checkpoint(run.manifest.step, run.manifest.digest)
            write_report(path, evaluation, checkpoint, file, place.key, notes)
    finally:
        print(f"{run.folder} at step {run.manifest.step} on {os.path.relpath(file.file)}")
        print_evaluation(evaluation, notes, pairs, file)
    print(f"\nwritten   {path}, .jsonl and .translations.txt")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "RUN/eval")
    explanation = "also score a copy of the set with a typo, other case and other punctuation in each source"
    parser.add_argument("--robust", action="store_true", help=explanation)


def load_test_set(run: LoadedRun) -> tuple[Pairs, SourceReport]:
    """The set that the config names, with warnings; UserError if it cannot be read so."""
    data, saved = run.config.data, run.saved.data
    if data.columns != saved.columns and not data.test:
        raise UserError(f"the test set of {run.folder} has the run's data.columns; name another with data.test=…")
    pairs, file = load_held_out(data, "test", run.folder)
    if data.test == saved.test and file.sha256 != recorded_test_set(run):
        write_note(f"warning: {file.file} is not the test set recorded in {run.folder / DATA}: it has changed")
    if data.test:
        for doubt in find_source_warnings(data, pairs, file, advise(data, file.file)):
            write_note(f"warning: {doubt}")
    return pairs, file


def count_overlap(run: LoadedRun, pairs: Pairs) -> tuple[int, int]:
    """Sources and targets of the set among the run's training sentences of the same language."""
    if run.config.data.source == run.saved.data.source:
        return overlap_with_training(run.folder, pairs.sources, pairs.targets)
    targets, sources = overlap_with_training(run.folder, pairs.targets, pairs.sources)
    return sources, targets


def find_near(run: LoadedRun, pairs: Pairs, evaluation: Evaluation) -> Neighbours | None:
    """How near the set is to the training pairs; None if those are not at hand."""
    try:
        return find_neighbours(pairs, run.training_pairs(), [each.translation for each in evaluation.sentences])
    except UserError as error:
        write_note(f"note: sentences near training are not counted: {error}")
        return None


def print_evaluation(evaluation: Evaluation, notes: Notes, pairs: Pairs, file: SourceReport) -> None:
    """The scores, what casts doubt on them, and the first sentences."""
    overlap, near, noised = notes
    print_scores(evaluation, file)
    if noised:
        print_noised(noised, evaluation)
    if one_sided := count_one_sided(pairs):
        print(f"one-sided {one_sided} of these rows have text on one side only")
    print(f"overlap   {overlap[0]} sources and {overlap[1]} targets of this set are among the training sentences")
    if near:
        print_near(near)
    if evaluation.in_pieces:
        print(f"in pieces {evaluation.in_pieces} sources, of more sentences or tokens than those of training")
    if evaluation.unended:
        print(f"unended   {evaluation.unended} translations were cut at their limit, decoding.max_length_*")
    for each in evaluation.sentences[:5]:
        print(f"\nsource       {each.source}\ntranslation  {each.translation}")
        print(f"reference    {each.references[0]}", flush=True)


if __name__ == "__main__":
    main()
