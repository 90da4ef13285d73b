"""A source of sentence pairs: its name in the config determines where the pairs are and which reader reads them."""

import os
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from common.errors import UserError
from data.config import DataConfig
from data.pairs import Pairs, normalise_rows
from data.sources.jsonl import read_jsonl
from data.sources.parquet import find_folder, read_dataset, read_parquet
from data.sources.phrasebook import TABLE, read_phrasebook
from data.sources.report import SourceReport
from data.sources.table import read_table
from data.sources.text import RowReader, Rows, read_parallel
from data.sources.tmx import read_tmx

Form = Literal["phrasebook", "parallel", "table", "jsonl", "parquet", "tmx", "dataset"]

ENDINGS: Final[dict[str, Form]] = {
    **dict.fromkeys((".tsv", ".txt", ".csv"), "table"),
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".tmx": "tmx",
}
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
LANGUAGE = re.compile(r"(?<![A-Za-z])LANG(?![A-Za-z])")
SHEETS = ".xlsx", ".xlsm", ".xls", ".ods", ".numbers"
INSTEAD = {  # of files with these endings
    **dict.fromkeys(SHEETS, "save it as CSV (.csv) or as tab-separated text (.tsv)"),
    **dict.fromkeys((".xml", ".zip", ".tar", ".tgz"), f"known are {', '.join(ENDINGS)} and NAME.LANG"),
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".sdltm", ".po"), "export it as TMX (.tmx)"),
    ".json": "write one object per line (.jsonl)",
}


@dataclass(frozen=True)
class Source:
    """A source of sentence pairs; its files, if it has any, exist.

    ``files`` are all files that it reads; None for a dataset on the hub, as they are not known before a request.
    ``rows`` reads the rows with the source's own order of columns; UserError names the file and line at fault.
    """

    config: DataConfig
    files: list[Path] | None
    rows: Callable[[], Rows]

    @classmethod
    def parse(cls, config: DataConfig, name: str, split: str) -> "Source":
        """The source with this name; UserError if the name fits no reader or a file is missing.

        ``split`` (train, valid or test) selects a part of a source that has several.
        """
        if not name.partition(":")[0]:
            raise UserError(f"data.{split}={name} names no file or dataset before its colon")

        def of_file(read: Callable[[DataConfig, Path], Rows]) -> Source:
            path = find_file(config, split, name)
            return cls(config, [path], partial(read, config, path))

        match form := form_of(name):
            case "phrasebook":
                return cls(config, [TABLE], partial(read_phrasebook, name, split, config.languages))
            case "parallel":
                path = Path(name)  # LANG is replaced in its last part only
                names = [language.join(LANGUAGE.split(path.name)) for language in config.languages]
                first, second = (find_file(config, split, str(path.with_name(each))) for each in names)
                return cls(config, [first, second], partial(read_parallel, config, first, second, path.name))
            case "table":
                return of_file(read_table)
            case "jsonl":
                return of_file(read_jsonl)
            case "parquet":
                return of_file(read_parquet)
            case "tmx":
                return of_file(read_tmx)
            case "dataset":
                folder = find_folder(config, name)
                refuse_no_dataset(name, split, folder)
                files = None if folder is None else sorted(path for path in folder.rglob("*") if path.is_file())
                return cls(config, files, partial(read_dataset, config, name, split))
            case _:
                raise NotImplementedError(f"the form {form} of {name}")

    def load(self) -> tuple[Pairs, SourceReport]:
        """Read and normalise the pairs, in the direction of translation; UserError as in ``rows``.

        Rows without text on either side, such as blank lines, are left out and counted as empty.
        """
        reader = RowReader(self.rows())
        pairs, empty = normalise_rows(reader)
        report = replace(reader.report, empty=empty)
        if len(pairs) == 0:
            counts = f"{report.rows} rows, {report.malformed} malformed, {empty} empty"
            raise UserError(f"{report.file} has no sentence pairs: {counts}")
        return swap_if_reversed(self.config, pairs), report


def load_source(config: DataConfig, name: str, split: str) -> tuple[Pairs, SourceReport]:
    """The pairs and the report of the source with this name; UserError as in ``Source.parse`` and ``Source.load``."""
    return Source.parse(config, name, split).load()


def swap_if_reversed(config: DataConfig, pairs: Pairs) -> Pairs:
    """From the columns of the corpus to the direction of translation, and back."""
    return pairs if config.source == config.languages[0] else pairs.reversed()


def form_of(name: str) -> Form:
    """The form of a source, or of a report's file, judged only by its name."""
    if name.partition(":")[0] == "phrasebook":
        return "phrasebook"
    if LANGUAGE.search(Path(name).name):
        return "parallel"
    return ENDINGS.get(ending_of(name), "dataset")


def ending_of(name: str) -> str:
    """The ending of a file name in lower case, ignoring .gz."""
    return Path(name.lower().removesuffix(".gz")).suffix


def refuse_no_dataset(name: str, split: str, folder: Path | None) -> None:
    """UserError if a name has an unsupported ending, or cannot be a dataset."""
    if instead := INSTEAD.get(ending_of(name)):
        raise UserError(f"data.{split}: cannot read {name}; {instead}")
    place = name.partition(":")[0]
    if folder is None and not HUB_NAME.fullmatch(place):  # datasets would take a name such as text for any file here
        known = ", ".join(ENDINGS)
        raise UserError(f"cannot read {place}: it is neither a file ({known}) nor a folder nor OWNER/NAME on the hub")


def find_file(config: DataConfig, split: str, name: str) -> Path:
    """The path of a file: absolute, in ``data.root``, or in the working directory; UserError if no file is there."""
    path = (Path(config.root) / name).absolute()
    if not os.path.exists(path) and os.path.exists(name):  # os.path accepts names that are too long or contain NUL
        path = Path(name).absolute()
    if not os.path.exists(path) and os.path.isdir(path.parent):  # some systems compose accents, some decompose them
        composed = unicodedata.normalize("NFC", path.name)
        same = (each for each in path.parent.iterdir() if unicodedata.normalize("NFC", each.name) == composed)
        path = next(same, path)
    if not os.path.isfile(path):
        advice = f"set data.root=FOLDER (relative to here), PUENTE_CORPUS=FOLDER or data.{split}=FILE"
        raise UserError(f"no {split} file at {path}; {advice} (python train.py --help lists the forms of a corpus)")
    return path
