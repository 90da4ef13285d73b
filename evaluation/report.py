"""The report that an evaluation leaves: its scores, what they belong to, and the sentences beside it."""

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import jax

from common.files import write_atomically
from data.sources.report import SourceReport
from evaluation.conditions import Conditions, sentences_beside, translations_beside
from evaluation.evaluate import Evaluation
from evaluation.sentences import as_lines

PACKAGES = ("jax", "flax", "numpy", "sentencepiece", "sacrebleu")


def write_report(
    path: Path,
    evaluation: Evaluation,
    *,
    step: int,
    file: SourceReport,
    conditions: Conditions,
    overlap: tuple[int, int] | None = None,
) -> None:
    """Write translations, sentences and the report at ``path``, in that order: it never refers to what is not there.

    ``overlap`` counts the set's distinct sources and targets among the training sentences; None if not counted.
    """
    report = asdict(evaluation.scores) | {
        "sources": len(evaluation.sentences),
        "rows": evaluation.rows,
        "step": step,
        "test_set": file.file,
        "rows_read": file.rows,
        "malformed": file.malformed,
        "empty": file.empty,
        "in_pieces": evaluation.in_pieces,
        "unended": evaluation.unended,
        "overlap_with_training": overlap and {"sources": overlap[0], "targets": overlap[1]},
        **asdict(conditions),
        "seconds": evaluation.seconds,
        "sentences_per_second": evaluation.sentences_per_second,
        "target_tokens_per_second": evaluation.target_tokens_per_second,
        "device": jax.devices()[0].device_kind,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }
    translations = "".join(f"{sentence.translation}\n" for sentence in evaluation.sentences)
    write_atomically(translations_beside(path), translations)
    write_atomically(sentences_beside(path), as_lines(evaluation.sentences))
    write_atomically(path, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
