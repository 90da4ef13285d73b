"""One evaluation, for validation during training and for eval.py alike, and the files that keep it."""

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
    """A held-out set translated and scored: an entry per distinct source."""

    sources: list[str]
    references: list[list[str]]
    translations: list[str]
    in_pieces: int  # sources that were too long to be translated whole
    unended: int  # translations that met their length limit
    scores: Scores
    seconds: float  # of translating; a first time compiles, too
    target_tokens: int  # without EOS

    @property
    def sentences_per_second(self) -> float:
        return len(self.sources) / self.seconds

    @property
    def target_tokens_per_second(self) -> float:
        return self.target_tokens / self.seconds


def evaluate(
    translator: Translator, params: Sequence[Params], pairs: Pairs, *, bootstrap: bool = False, progress: bool = False
) -> Evaluation:
    """Translate each distinct source once and score it against all its references.

    ``progress`` shows a bar on standard error, if that is a terminal.
    """
    sources, references = group_references(pairs.sources, pairs.targets)
    start = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", leave=False, disable=None if progress else True) as bar:
        translations = translator.translate(params, sources, advance=bar.update)
    seconds = time.perf_counter() - start
    texts = [translation.text for translation in translations]
    return Evaluation(
        sources,
        references,
        texts,
        in_pieces=sum(len(translation.sources) > 1 for translation in translations),
        unended=sum(not translation.ended for translation in translations),
        scores=score(texts, references, bootstrap=bootstrap),
        seconds=seconds,
        target_tokens=sum(translation.length for translation in translations),
    )


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
    """Keep an evaluation: ``eval/SET.translations.txt``, a line a distinct source, and ``eval/SET.json``.

    ``step`` is the checkpoint's; ``overlap`` counts the set's distinct sources and targets that are also training
    sentences (None: not counted). The JSON comes last, so it never tells of translations that are not there.
    """
    folder = run_dir / "eval"
    write_atomically(folder / f"{set_name}.translations.txt", "".join(f"{line}\n" for line in evaluation.translations))
    facts = asdict(evaluation.scores) | {
        "sources": len(evaluation.sources),
        "rows": sum(map(len, evaluation.references)),
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
    write_atomically(folder / f"{set_name}.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
