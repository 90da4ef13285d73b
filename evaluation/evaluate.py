"""The one evaluator, for validation during training and for eval.py, and the report that it leaves in the run."""

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import jax
from tqdm import tqdm

from common.files import write_atomically
from data.pairs import Pairs
from data.report import SourceReport
from evaluation.metrics import Scores, group_references, score
from evaluation.translate import Translator
from model.config import DecodingConfig
from model.transformer import Params

PACKAGES = ("jax", "flax", "numpy", "sentencepiece", "sacrebleu")


@dataclass(frozen=True)
class Evaluation:
    """A held-out set, translated and scored. Lists have an entry for each distinct source."""

    sources: list[str]
    references: list[list[str]]
    translations: list[str]
    in_pieces: int  # sources too long to be translated whole
    unended: int  # translations cut off by their length limit
    scores: Scores
    seconds: float  # of translating, compilation included
    target_tokens: int  # without EOS

    @property
    def rows(self) -> int:
        """Pairs of the set: a source has one for each of its references."""
        return sum(map(len, self.references))

    @property
    def sentences_per_second(self) -> float:
        return len(self.sources) / self.seconds

    @property
    def target_tokens_per_second(self) -> float:
        return self.target_tokens / self.seconds


def evaluate(
    translator: Translator, params: Sequence[Params], pairs: Pairs, *, bootstrap: bool = False, progress: bool = False
) -> Evaluation:
    """Translate each distinct source once and score it against all its references; ``progress`` shows a bar."""
    sources, references = group_references(pairs.sources, pairs.targets)
    start = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", leave=False, disable=None if progress else True) as bar:
        translations = translator.translate(params, sources, on_progress=bar.update)
    seconds = time.perf_counter() - start
    texts = [translation.text for translation in translations]
    in_pieces = sum(len(translation.sources) > 1 for translation in translations)
    unended = sum(not translation.ended for translation in translations)
    scores = score(texts, references, bootstrap=bootstrap)
    target_tokens = sum(translation.length for translation in translations)
    return Evaluation(sources, references, texts, in_pieces, unended, scores, seconds, target_tokens)


def write_report(
    run_dir: Path,
    set_name: str,
    evaluation: Evaluation,
    *,
    step: int,
    file: SourceReport,
    decoding: DecodingConfig,
    overlap: tuple[int, int] | None = None,
) -> None:
    """Write ``eval/SET.translations.txt``, a line per distinct source, and ``eval/SET.json``.

    ``overlap`` counts the set's distinct sources and targets among the training sentences; None if not counted. The
    JSON is written last, so it never refers to translations that are not there.
    """
    report = asdict(evaluation.scores) | {
        "sources": len(evaluation.sources),
        "rows": evaluation.rows,
        "step": step,
        "test_set": file.file,
        "test_set_sha256": file.sha256,
        "malformed": file.malformed,
        "in_pieces": evaluation.in_pieces,
        "unended": evaluation.unended,
        "overlap_with_training": overlap and {"sources": overlap[0], "targets": overlap[1]},
        "decoding": asdict(decoding),
        "seconds": evaluation.seconds,
        "sentences_per_second": evaluation.sentences_per_second,
        "target_tokens_per_second": evaluation.target_tokens_per_second,
        "device": jax.devices()[0].device_kind,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }
    folder = run_dir / "eval"
    write_atomically(folder / f"{set_name}.translations.txt", "".join(f"{line}\n" for line in evaluation.translations))
    write_atomically(folder / f"{set_name}.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
