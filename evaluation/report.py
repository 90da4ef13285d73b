"""The report of a score: its key, its path, chosen so that no report replaces another's, and its content."""

import json
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax

from common.files import read_json_object, sha256, write_atomically
from common.option import select
from data.config import DataConfig
from data.noise import SEED
from data.sources.report import SourceReport
from data.sources.source import ENDINGS
from evaluation.evaluate import Evaluation
from evaluation.neighbours import Neighbours
from evaluation.sentences import as_lines
from model.config import DecodingConfig

PACKAGES = ("jax", "flax", "numpy", "sentencepiece", "sacrebleu")


@dataclass(frozen=True)
class Precision:
    """The keys of ``model`` that an evaluation may change."""

    dtype: str = "float32"
    matmul_dtype: str = "float32"


@dataclass(frozen=True)
class ReportKey:
    """The conditions of a score: the set, how its file is read, and how its translations are searched.

    ``direction`` is empty for a model with one direction. ``run`` is the run's absolute path if the report is outside
    the run's directory, in a folder that several runs may share; it is empty inside.
    """

    test_set_sha256: str = ""
    reading: dict[str, Any] = field(default_factory=lambda: select(DataConfig(), "of_file"))
    precision: Precision = field(default_factory=Precision)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    run: str = ""
    direction: str = ""

    def digest(self) -> str:
        """Eight hexadecimal digits; config keys added in later versions do not change them."""
        return sha256(json.dumps(_without_defaults(asdict(self)), sort_keys=True))[:8]

    def matches(self, path: Path) -> bool:
        """Whether the report at this path has this key, as far as the version that wrote it recorded one."""
        report, mine = read_json_object(path), asdict(self)
        recorded = mine | {name: report[name] for name in mine if name in report}
        return "test_set_sha256" in report and _without_defaults(recorded) == _without_defaults(mine)


def _without_defaults(facts: dict[str, Any]) -> dict[str, Any]:
    defaults = asdict(ReportKey())
    return {
        name: {key: value for key, value in fact.items() if value != defaults[name].get(key)}
        if isinstance(fact, dict) and isinstance(defaults[name], dict)
        else fact
        for name, fact in facts.items()
        if fact or name != "direction"  # newer than the other names; their empty values are in old digests
    }


class Checkpoint(NamedTuple):
    """The checkpoint that was scored."""

    step: int
    digest: str  # empty during training

    def is_scored_by(self, report: dict[str, Any]) -> bool:
        """Whether the report scores this checkpoint; older versions and training record only the step."""
        return report.get("step") == self.step and (report.get("checkpoint") or self.digest) == self.digest


@dataclass(frozen=True)
class ReportPlace:
    """The place of a key's report; ``is_own`` for the score of a run's own set with nothing changed.

    ``checkpoint`` is the one that decoding.checkpoint selects now, if it is known.
    """

    folder: Path
    set_name: str
    key: ReportKey
    is_own: bool = False
    checkpoint: Checkpoint | None = None

    def choose(self) -> Path:
        """The path to write to, chosen so that a report can replace only one with the same key.

        ``SET.json`` is for the run's own score, unless another report is already there, such as one from an older
        version; all other reports are ``SET-DIGEST.json``.
        """
        if self.is_own and (not self._plain.exists() or self.key.matches(self._plain)):
            return self._plain
        return self.folder / f"{self.set_name}-{self.key.digest()}.json"

    def find(self) -> Path | None:
        """The report of this key and checkpoint, or None. Older versions wrote ``SET.json`` for any set and search."""
        for path in filter(self.key.matches, (self.choose(), self._plain)):
            if self.checkpoint is None or self.checkpoint.is_scored_by(read_json_object(path)):
                return path
        return None

    @property
    def _plain(self) -> Path:
        return self.folder / f"{self.set_name}.json"


class Notes(NamedTuple):
    """Facts to consider when reading a score, as far as they are known."""

    overlap: tuple[int, int]  # distinct sources and targets among the training sentences
    near: Neighbours | None = None
    noised: Evaluation | None = None  # of the set with noise in its sources


def translations_beside(report: Path) -> Path:
    """The file with the translations that a report scores, one per distinct source."""
    return report.with_name(f"{report.stem}.translations.txt")


def sentences_beside(report: Path) -> Path:
    """The file with all details of each sentence that a report scores: see evaluation/sentences.py."""
    return report.with_name(f"{report.stem}.jsonl")


def name_of_source(source: str) -> str:
    """A short name for a file or dataset: mine for FOLDER/mine.tsv.gz, opus.en-es for OWNER/opus:en-es."""
    name = Path(source).name.removesuffix(".gz").replace(":", ".")
    ending = Path(name).suffix
    return name.removesuffix(ending if ending in (*ENDINGS, ".LANG") else "")[:100]


def write_report(
    path: Path, evaluation: Evaluation, of: Checkpoint, file: SourceReport, key: ReportKey, notes: Notes | None = None
) -> None:
    """Write translations, sentences and last the report at ``path``, so that it never refers to missing files."""
    overlap, near, noised = notes or (None, None, None)
    report = asdict(evaluation.scores) | {
        "sources": len(evaluation.sentences),
        "rows": evaluation.rows,
        "step": of.step,
        "checkpoint": of.digest,
        "test_set": file.file,
        "rows_read": file.rows,
        "malformed": file.malformed,
        "empty": file.empty,
        "in_pieces": evaluation.in_pieces,
        "unended": evaluation.unended,
        "overlap_with_training": overlap and {"sources": overlap[0], "targets": overlap[1]},
        "near_training": near and asdict(near),
        "noised": noised and {"bleu": noised.scores.bleu, "chrf": noised.scores.chrf, "seed": SEED},
        **asdict(key),
        "seconds": evaluation.seconds,
        "device": jax.devices()[0].device_kind,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }
    translations = "".join(f"{sentence.translation}\n" for sentence in evaluation.sentences)
    write_atomically(translations_beside(path), translations)
    write_atomically(sentences_beside(path), as_lines(evaluation.sentences))
    write_atomically(path, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
