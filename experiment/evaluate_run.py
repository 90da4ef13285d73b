"""A run's score on a held-out set, and its report, for eval.py and the Python interface."""

from pathlib import Path
from typing import NamedTuple

from common.errors import UserError, write_note
from common.option import select
from data.config import DataConfig
from data.corpus.language import advise
from data.corpus.warnings import find_source_warnings
from data.noise import noised_pairs
from data.pairs import Pairs
from data.sources.report import SourceReport
from evaluation.evaluate import Evaluation, evaluate
from evaluation.neighbours import Neighbours, find_neighbours
from evaluation.report import Checkpoint, Notes, write_report
from experiment.load_run import MAY_CHANGE, LoadedRun
from experiment.reports import place_report, recorded_test_set
from training.run.corpus import load_held_out, overlap_with_training
from training.run.layout import DATA

OF_TEST_SET = {f"data.{key}" for key in ("root", "test", "max_malformed", *select(DataConfig(), "of_file"))}
MAY_CHANGE_FOR_SCORES = MAY_CHANGE | OF_TEST_SET


class EvaluatedSet(NamedTuple):
    """The set that a run's config names, its scores, and notes for interpreting them."""

    pairs: Pairs
    file: SourceReport
    evaluation: Evaluation
    notes: Notes


def evaluate_run(run: LoadedRun, with_noise: bool = False) -> EvaluatedSet:
    """Translate and score the set, and ``with_noise`` also a copy with noise in its sources. Writes nothing."""
    pairs, file = load_test_set(run)
    overlap = count_overlap(run, pairs)  # first: it finds damage in the run
    evaluation = evaluate(run.translator, run.params, pairs, set_name=file.file, progress=True)
    near = find_near(run, pairs, evaluation)
    noised = evaluate(run.translator, run.params, noised_pairs(pairs), progress=True) if with_noise else None
    return EvaluatedSet(pairs, file, evaluation, Notes(overlap, near, noised))


def keep_report(run: LoadedRun, found: EvaluatedSet, folder: Path) -> Path:
    """Write the report to the folder without replacing reports of other sets or searches; returns its path."""
    place = place_report(run, found.file.sha256, folder)
    path, checkpoint = place.choose(), Checkpoint(run.manifest.step, run.manifest.digest)
    write_report(path, found.evaluation, checkpoint, found.file, place.key, found.notes)
    return path


def load_test_set(run: LoadedRun) -> tuple[Pairs, SourceReport]:
    """Load the set that the config names, with warnings; UserError if it cannot be read that way."""
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
    """How close the set is to the training pairs; None if those are not available."""
    try:
        return find_neighbours(pairs, run.training_pairs(), [each.translation for each in evaluation.sentences])
    except UserError as error:
        write_note(f"note: sentences near training are not counted: {error}")
        return None
