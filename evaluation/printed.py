"""Print scores for eval.py."""

from data.sources.report import SourceReport, describe_unscored
from evaluation.evaluate import Evaluation
from evaluation.neighbours import FEWEST_WORDS, Neighbours


def print_scores(evaluation: Evaluation, file: SourceReport) -> None:
    """Print each score with its signature and the data that it was computed on."""
    scores, sources, rows = evaluation.scores, len(evaluation.sentences), evaluation.rows
    interval = scores.bleu_interval
    assert interval is not None
    print(f"BLEU      {scores.bleu:.2f}  95 % interval {interval.low:.2f} to {interval.high:.2f}  {scores.signature}")
    print(f"          the interval is for this model and other sentences: here are {interval.groups} groups of them")
    if scores.bleu_note:
        print(f"          {scores.bleu_note}")
    print(f"chrF      {scores.chrf:.2f}  {scores.chrf_signature}")
    print(f"          on {sources} distinct sources against all their {rows} references")
    print(f"BLEU/row  {scores.bleu_per_row:.2f}  {scores.bleu_per_row_signature}")
    print(f"          on {rows} rows, each with its one reference")
    if unscored := describe_unscored(file):
        print(f"dropped   {unscored}")


def print_near(near: Neighbours) -> None:
    """Print the model's scores on sources that are near training, and on the others."""
    bleu = ["–" if each is None else f"{each:.2f}" for each in (near.bleu_near, near.bleu_others)]
    print(f"near      {near.near} of {near.sources} sources of {FEWEST_WORDS} words or more are a word from training:")
    print(f"          BLEU {bleu[0]}, of the others {bleu[1]}, of copying the most similar {near.bleu_copied:.2f}")


def print_noised(noised: Evaluation, clean: Evaluation) -> None:
    """Print how much the noise lowers the scores, and an example."""
    bleu, chrf = noised.scores.bleu, noised.scores.chrf
    print(f"noised    BLEU {bleu:.2f} ({bleu - clean.scores.bleu:+.2f}), chrF {chrf:.2f} with noise in the sources")
    print(f"          {noised.sentences[0].source} → {noised.sentences[0].translation}")
