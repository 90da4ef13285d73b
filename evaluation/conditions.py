"""What a score belongs to, and where its report lies, so that none replaces another's."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.files import read_json_object, sha256
from common.option import select
from data.config import DataConfig
from data.sources.source import ENDINGS
from model.config import DecodingConfig


@dataclass(frozen=True)
class Precision:
    """The keys of ``model`` that an evaluation may change."""

    dtype: str = "float32"
    matmul_dtype: str = "float32"


@dataclass(frozen=True)
class Conditions:
    """What a score belongs to besides its run: a set, how it is read, and how its translations are searched.

    ``direction`` is empty for a model of one direction. ``run`` is the run's absolute path for a report outside of its
    directory, where those of several runs may lie together, and empty inside.
    """

    test_set_sha256: str = ""
    reading: dict[str, Any] = field(default_factory=lambda: select(DataConfig(), "of_file"))
    precision: Precision = field(default_factory=Precision)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    run: str = ""
    direction: str = ""

    def digest(self) -> str:
        """Eight hexadecimal digits; keys that later versions add do not change them."""
        return sha256(json.dumps(_without_defaults(asdict(self)), sort_keys=True))[:8]

    def are_those_of(self, report: dict[str, Any]) -> bool:
        """Whether a report has these conditions, as far as the version that wrote it recorded them."""
        mine = asdict(self)
        recorded = mine | {key: report[key] for key in mine if key in report}
        return "test_set_sha256" in report and _without_defaults(recorded) == _without_defaults(mine)


def _without_defaults(facts: dict[str, Any]) -> dict[str, Any]:
    defaults = asdict(Conditions())
    return {
        name: {key: value for key, value in fact.items() if value != defaults[name].get(key)}
        if isinstance(fact, dict) and isinstance(defaults[name], dict)
        else fact
        for name, fact in facts.items()
        if fact or name != "direction"  # later than the other names, whose empty values are in old digests
    }


def place_report(folder: Path, set_name: str, conditions: Conditions, *, own: bool) -> Path:
    """Where a report goes, so that it replaces at most one of the same conditions.

    ``SET.json`` is for a run's own test set, searched as its config says, unless another report lies there, such as
    one of an older version; everything else is ``SET-DIGEST.json``.
    """
    plain = folder / f"{set_name}.json"
    if own and (not plain.exists() or conditions.are_those_of(read_json_object(plain))):
        return plain
    return folder / f"{set_name}-{conditions.digest()}.json"


def find_report(folder: Path, set_name: str, conditions: Conditions, *, own: bool) -> Path | None:
    """The report of these conditions, or None. Older versions wrote ``SET.json`` for any set and search."""
    places = place_report(folder, set_name, conditions, own=own), folder / f"{set_name}.json"
    return next((path for path in places if conditions.are_those_of(read_json_object(path))), None)


def translations_beside(report: Path) -> Path:
    """The file with the translations that a report scores, one per distinct source."""
    return report.with_name(f"{report.stem}.translations.txt")


def sentences_beside(report: Path) -> Path:
    """The file with all that is known of each sentence that a report scores: see evaluation/sentences.py."""
    return report.with_name(f"{report.stem}.jsonl")


def name_of_source(source: str) -> str:
    """A file or dataset without folder and endings: FOLDER/mine.tsv.gz is mine, OWNER/opus:en-es is opus.en-es."""
    name = Path(source).name.removesuffix(".gz").replace(":", ".")
    ending = Path(name).suffix
    return name.removesuffix(ending if ending in (*ENDINGS, ".LANG") else "")[:100]
