"""Translate and score a held-out set with a trained run: python eval.py RUN [key=value …].

The set is the run's test set, or any file of pairs with data.test=PATH. The report is also written to RUN/eval, or to
the folder of --output: the run's own score, with nothing changed, as test.json, and every other set or search under a
name of its own, so that none replaces another. A run of both directions (data.direction=both) is scored from its
data.source; with both exchanged, as data.source=es data.target=en, it is scored in the reverse direction.
"""

import os
from dataclasses import replace
from pathlib import Path

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

from cli.command_line import add_output, offer_output, parse_command_line
from common.errors import UserError, exit_on_user_error, write_note
from common.option import select
from configs.load import load_run_config
from data.config import DataConfig
from data.corpus.language import advise
from data.corpus.report import DATA_FILE
from data.corpus.splits import overlap_with_training
from data.corpus.warnings import describe_doubts
from data.pairs import Pairs, count_one_sided
from data.sources.corpus import load_held_out
from data.sources.report import SourceReport, describe_unscored
from evaluation.conditions import name_of_source, place_report
from evaluation.evaluate import Evaluation, evaluate
from evaluation.report import write_report
from experiment.load_run import MAY_CHANGE, LoadedRun, load_run
from experiment.own_reports import conditions_of, own_conditions

OF_TEST_SET = "root", "test", "max_malformed", *select(DataConfig(), "of_file")
TEST_SET = tuple(f"data.{key}:" for key in OF_TEST_SET)  # what overrides may change


@exit_on_user_error()
def main() -> None:
    """Print the scores before anything is written: whatever becomes of the report, they are there."""
    positionals = {"RUN": "a run directory, such as runs/tatoeba-small"}
    accepted = (*MAY_CHANGE, *TEST_SET)
    arguments = parse_command_line(__doc__, positionals, lambda parser: add_output(parser, "RUN/eval"), accepted)
    run_dir = Path(arguments.RUN)
    run = load_run(run_dir, arguments.overrides, "eval.py", accepted)
    saved = load_run_config(run_dir).data
    check_columns(run.config.data, saved, run_dir)
    pairs, file = load_held_out(run.config.data, "test", run_dir)
    if run.config.data.test == saved.test:
        warn_of_another_set(file, run_dir)
    if run.config.data.test:
        for doubt in describe_doubts(run.config.data, pairs, file, advise(run.config.data, file.file)):
            write_note(f"warning: {doubt}")
    overlap = count_overlap(run_dir, pairs, run.config.data.source == saved.source)  # first: it finds damage in the run
    evaluation = evaluate(run.translator, run.params, pairs, bootstrap=True, progress=True)

    print(f"{run_dir} at step {run.step} on {os.path.relpath(file.file)}")
    print_scores(evaluation, file)
    if one_sided := count_one_sided(pairs):
        print(f"one-sided {one_sided} of these rows have text on one side only")
    print(f"overlap   {overlap[0]} sources and {overlap[1]} targets of this set are among the training sentences")
    print_limits(evaluation)
    print_examples(evaluation)
    folder = arguments.output or run_dir / "eval"
    with offer_output(folder):
        path = write(run, run_dir, folder, evaluation, file, overlap)
    print(f"\nwritten   {path}, .jsonl and .translations.txt")


def count_overlap(run_dir: Path, pairs: Pairs, forward: bool) -> tuple[int, int]:
    """Sources and targets of the set among the run's training sentences of the same language."""
    if forward:
        return overlap_with_training(run_dir, pairs.sources, pairs.targets)
    targets, sources = overlap_with_training(run_dir, pairs.targets, pairs.sources)
    return sources, targets


def check_columns(chosen: DataConfig, saved: DataConfig, run_dir: Path) -> None:
    if chosen.columns != saved.columns and not chosen.test:
        raise UserError(f"the test set of {run_dir} has the run's data.columns; name another with data.test=…")


def warn_of_another_set(file: SourceReport, run_dir: Path) -> None:
    """Tell that the run's test set is no longer what it was when the run recorded it."""
    if file.sha256 != own_conditions(run_dir).test_set_sha256:
        recorded = run_dir / DATA_FILE
        write_note(f"warning: {file.file} is not the test set recorded in {recorded}: it has changed")


def write(
    run: LoadedRun,
    run_dir: Path,
    folder: Path,
    evaluation: Evaluation,
    file: SourceReport,
    overlap: tuple[int, int],
) -> Path:
    """Write the report where it replaces none of another set, search or run; return its path."""
    outside = "" if folder.resolve() == (run_dir / "eval").resolve() else str(run_dir.resolve())
    conditions, own = conditions_of(run.config, file.sha256, outside), own_conditions(run_dir, outside)
    is_own_set = file.sha256 == own.test_set_sha256 or not run.config.data.test
    set_name = "test" if is_own_set else name_of_source(run.config.data.test)
    if conditions.direction != own.direction:
        set_name, own = f"{set_name}.{conditions.direction}", replace(own, direction=conditions.direction)
    path = place_report(folder, set_name, conditions, own=conditions == own)
    write_report(path, evaluation, step=run.step, file=file, conditions=conditions, overlap=overlap)
    return path


def print_scores(evaluation: Evaluation, file: SourceReport) -> None:
    """Each score with its signature and with what it was computed on."""
    scores, sources, rows = evaluation.scores, len(evaluation.sentences), evaluation.rows
    interval = scores.bleu_interval
    assert interval is not None
    print(f"BLEU      {scores.bleu:.2f}  95 % interval {interval.low:.2f} to {interval.high:.2f}  {scores.signature}")
    print(f"chrF      {scores.chrf:.2f}  {scores.chrf_signature}")
    print(f"          on {sources} distinct sources against all their {rows} references")
    print(f"BLEU/row  {scores.bleu_per_row:.2f}  {scores.bleu_per_row_signature}")
    print(f"          on {rows} rows, each with its one reference")
    if unscored := describe_unscored(file):
        print(f"dropped   {unscored}")
    speed = (
        f"{evaluation.sentences_per_second:.1f} sentences/s, {evaluation.target_tokens_per_second:.0f} target tokens/s"
    )
    print(f"speed     {evaluation.seconds:.1f} s, {speed}, compilation included")


def print_limits(evaluation: Evaluation) -> None:
    """What was cut at a length, if anything was."""
    if evaluation.in_pieces:
        why = "too long for decoding.max_source_tokens"
        print(f"in pieces {evaluation.in_pieces} sources, cut at sentence ends: {why}")
    if evaluation.unended:
        print(f"unended   {evaluation.unended} translations met their limit, decoding.max_length_*, and stand whole")


def print_examples(evaluation: Evaluation) -> None:
    for each in evaluation.sentences[:5]:
        print(f"\nsource       {each.source}\ntranslation  {each.translation}")
        print(f"reference    {each.references[0]}", flush=True)


if __name__ == "__main__":
    main()
