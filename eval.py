"""Translate and score a held-out set with a trained run: python eval.py RUN [key=value …].

The set is the run's test set, or any file of pairs with data.test=PATH. The report is also written to RUN/eval.
"""

import os
import re
from itertools import islice
from pathlib import Path

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

from cli.command_line import parse_command_line
from cli.load_run import MAY_CHANGE, load_run
from common.errors import UserError, exit_on_user_error
from configs.load import load_run_config
from data.config import DataConfig
from data.sources.corpus import load_held_out
from data.splits import overlap_with_training
from evaluation.evaluate import Evaluation, evaluate, write_report

TEST_SET = tuple(f"data.{key}:" for key in "root test columns header quoting encoding malformed max_malformed".split())


@exit_on_user_error()
def main() -> None:
    arguments = parse_command_line(__doc__, {"RUN": "a run directory, such as runs/tatoeba-small"})
    run_dir = Path(arguments.RUN)
    run = load_run(run_dir, arguments.overrides, "eval.py", (*MAY_CHANGE, *TEST_SET))
    config = run.config
    set_name = name_set(config.data, load_run_config(run_dir).data, run_dir)
    pairs, file = load_held_out(config.data, "test", run_dir)
    evaluation = evaluate(run.translator, run.params, pairs, bootstrap=True, progress=True)
    overlap = overlap_with_training(run_dir, pairs.sources, pairs.targets)
    write_report(run_dir, set_name, evaluation, step=run.step, file=file, decoding=config.decoding, overlap=overlap)

    print(f"{run_dir} at step {run.step} on {os.path.relpath(file.file)}")
    print_scores(evaluation)
    print(f"overlap   {overlap[0]} sources and {overlap[1]} targets of this set are among the training sentences")
    if evaluation.in_pieces:
        why = "too long for decoding.max_source_tokens"
        print(f"in pieces {evaluation.in_pieces} sources, cut at sentence ends: {why}")
    if evaluation.unended:
        print(f"unended   {evaluation.unended} translations met their limit, decoding.max_length_*, and stand whole")
    examples = zip(evaluation.sources, evaluation.translations, evaluation.references, strict=True)
    for source, translation, references in islice(examples, 5):
        print(f"\nsource       {source}\ntranslation  {translation}\nreference    {references[0]}")
    print(f"\nwritten   {run_dir / 'eval' / set_name}.json and .translations.txt")


def name_set(chosen: DataConfig, saved: DataConfig, run_dir: Path) -> str:
    """The set's name in ``RUN/eval``: "test" for the run's own, another set's file name."""
    if chosen.columns != saved.columns and not chosen.test:
        raise UserError(f"the test set of {run_dir} has the run's data.columns; name another with data.test=…")
    return "test" if chosen.test == saved.test else name_of_source(chosen.test)


def name_of_source(source: str) -> str:
    """A file or dataset without folder and endings: FOLDER/mine.tsv.gz is mine, OWNER/opus:en-es is opus.en-es."""
    name = Path(source).name.removesuffix(".gz").replace(":", ".")
    return re.sub(r"\.(tsv|txt|jsonl|parquet|LANG)$", "", name)[:100]


def print_scores(evaluation: Evaluation) -> None:
    """Each score with its signature and with what it was computed on."""
    scores, sources, rows = evaluation.scores, len(evaluation.sources), evaluation.rows
    interval = scores.bleu_interval
    assert interval is not None
    print(f"BLEU      {scores.bleu:.2f}  95 % interval {interval.low:.2f} to {interval.high:.2f}  {scores.signature}")
    print(f"chrF      {scores.chrf:.2f}  {scores.chrf_signature}")
    print(f"          on {sources} distinct sources against all their {rows} references")
    print(f"BLEU/row  {scores.bleu_per_row:.2f}  {scores.bleu_per_row_signature}")
    print(f"          on {rows} rows, each with its one reference")
    speed = (
        f"{evaluation.sentences_per_second:.1f} sentences/s, {evaluation.target_tokens_per_second:.0f} target tokens/s"
    )
    print(f"speed     {evaluation.seconds:.1f} s, {speed}, compilation included")


if __name__ == "__main__":
    main()
