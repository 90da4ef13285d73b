"""Sources of sentence pairs → normalised, filtered pairs in the direction of translation."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.errors import UserError
from data.config import DataConfig
from data.corpus.report import DATA_FILE, Dropped, SourceReport, load_identity
from data.pairs import Pairs, normalise_rows
from data.sources.jsonl import read_jsonl
from data.sources.parquet import read_dataset, read_parquet
from data.sources.phrasebook import TABLE, read_phrasebook
from data.sources.table import read_tsv
from data.sources.text import RowReader, Rows, read_parallel

LANGUAGE = re.compile(r"(?<![A-Za-z])LANG(?![A-Za-z])")
HUB_SPLITS = {"train": "train", "valid": "validation", "test": "test"}  # their names in hub datasets


def load_source(config: DataConfig, name: str, split: str) -> tuple[Pairs, SourceReport]:
    """Read and normalise the pairs of a source; UserError names what cannot be read, with file and line.

    Rows without text on either side, such as blank lines, are left out and counted as empty.
    ``split`` (train, valid or test) selects the part of a source that has several.
    """
    reader = RowReader(read_source(config, name, split))
    pairs, empty = normalise_rows(reader)
    report = replace(reader.report, empty=empty)
    if len(pairs) == 0:
        counts = f"{report.rows} rows, {report.malformed} malformed, {empty} empty"
        raise UserError(f"{report.file} has no sentence pairs: {counts}")
    return swap_if_reversed(config, pairs), report


def swap_if_reversed(config: DataConfig, pairs: Pairs) -> Pairs:
    """From the columns of the corpus to the direction of translation, and back."""
    return pairs if config.source == config.languages[0] else Pairs(pairs.targets, pairs.sources)


def load_held_out(config: DataConfig, split: str, run_dir: Path) -> tuple[Pairs, SourceReport]:
    """Load a run's ``valid`` or ``test`` set: the source named in the config, or the set taken out of training.

    UserError if the latter is not the set recorded in ``data.json``.
    """
    if name := config.valid if split == "valid" else config.test:
        return load_source(config, name, split)
    pairs, report = load_source(as_written(config), str(held_out_path(run_dir, split).absolute()), split)
    recorded = load_identity(run_dir)
    if recorded is None or recorded.files[split] != [report.sha256]:
        raise UserError(f"{report.file} is not the set recorded in {run_dir / DATA_FILE}: bring both files back")
    return pairs, report


def as_written(config: DataConfig) -> DataConfig:
    """How to read the pairs that a run has written, whatever form its corpus has."""
    return replace(config, columns=list(config.languages), header="keep", quoting="keep", encoding="utf-8")


def held_out_path(run_dir: Path, split: str) -> Path:
    """Where a run stores a set taken out of its training pairs."""
    return run_dir / "held_out" / f"{split}.tsv"


def read_source(config: DataConfig, name: str, split: str) -> Rows:
    """The unchanged rows of a source; the form of its name selects the reader."""
    first_name = name.partition(":")[0]
    if not first_name:
        raise UserError(f"data.{split}={name} names no file or dataset before its colon")
    if first_name == "phrasebook":
        return read_phrasebook(name, split, config.languages)
    if is_parallel(name):
        paths = [find_file(config, split, in_language(name, language), name) for language in config.languages]
        return read_parallel(config, paths[0], paths[1], Path(name).name)
    match Path(name.removesuffix(".gz")).suffix:
        case ".tsv" | ".txt":
            return read_tsv(config, find_file(config, split, name))
        case ".jsonl":
            return read_jsonl(config, find_file(config, split, name))
        case ".parquet":
            return read_parquet(config, find_file(config, split, name))
        case ".csv" | ".xlsx" | ".xls" | ".ods":
            raise UserError(f"data.{split}: cannot read {name}; save it as tab-separated text (.tsv)")
        case ".json":
            raise UserError(f"data.{split}: cannot read {name}; write one object a line (.jsonl)")
        case ".tmx" | ".xml" | ".zip" | ".tar" | ".tgz":
            raise UserError(f"data.{split}: cannot read {name}; known are .tsv, .txt, .jsonl, .parquet and NAME.LANG")
    refuse_half(config, name, split)
    folders = (Path(config.root) / first_name, Path(first_name))
    place = next((str(folder.absolute()) for folder in folders if os.path.isdir(folder)), first_name)
    return read_dataset(config, place, name, HUB_SPLITS[split])


def find_source_files(config: DataConfig, name: str, split: str) -> list[Path] | None:
    """The files that ``read_source`` reads; None for a dataset of the hub, whose files are not known yet.

    UserError if there is no such file.
    """
    first_name = name.partition(":")[0]
    if first_name == "phrasebook":
        return [TABLE]
    if is_parallel(name):
        return [find_file(config, split, in_language(name, language), name) for language in config.languages]
    if Path(name.removesuffix(".gz")).suffix in (".tsv", ".txt", ".jsonl", ".parquet"):
        return [find_file(config, split, name)]
    for folder in (Path(config.root) / first_name, Path(first_name)):
        if os.path.isdir(folder):
            return sorted(path.absolute() for path in folder.rglob("*") if path.is_file())
    return None


def is_parallel(name: str) -> bool:
    """Whether a source of this name is two files."""
    return LANGUAGE.search(Path(name).name) is not None


def is_table(name: str) -> bool:
    """Whether a source of this name has columns in an order, not names."""
    return not is_parallel(name) and Path(name.removesuffix(".gz")).suffix in (".tsv", ".txt")


def refuse_half(config: DataConfig, name: str, split: str) -> None:
    """UserError if a name is that of one of two parallel files."""
    stem, _, language = name.removesuffix(".gz").rpartition(".")
    if language in config.languages and (os.path.isfile(Path(config.root) / name) or os.path.isfile(name)):
        both = f"{stem}.LANG" + ".gz" * name.endswith(".gz")
        raise UserError(f"data.{split}: {name} is one of two parallel files; data.{split}={both} names both")


def in_language(name: str, language: str) -> str:
    """The name of one of two parallel files; LANG is replaced in the last part of the path only."""
    return str(Path(name).with_name(LANGUAGE.sub(lambda _: language, Path(name).name)))


def find_file(config: DataConfig, split: str, name: str, asked: str = "") -> Path:
    """Resolve a path: absolute, relative to ``data.root``, or else relative to the working directory.

    ``asked`` is what the config names, if that is another.
    """
    path = (Path(config.root) / name).absolute()
    if not os.path.exists(path) and os.path.exists(name):  # os.path accepts names that are too long or contain NUL
        path = Path(name).absolute()
    if not os.path.isfile(path):
        refuse_other_ending(path, split, asked or name)
        raise UserError(
            f"no {split} file at {path}; set data.root=FOLDER (relative to here), PUENTE_CORPUS=FOLDER or "
            f"data.{split}=FILE (python train.py --help lists the forms of a corpus)"
        )
    return path


def refuse_other_ending(path: Path, split: str, asked: str) -> None:
    """UserError if a file is there with .gz after its name, or without."""
    end = ".gz"
    other = str(path).removesuffix(end) if path.suffix == end else f"{path}{end}"
    if os.path.isfile(other):
        name = asked.removesuffix(end) if path.suffix == end else asked + end
        raise UserError(f"no {split} file at {path}, but {other} is there: data.{split}={name} names it")


def filter_pairs(pairs: Pairs, max_length_ratio: float) -> tuple[Pairs, Dropped]:
    """Drop and count training pairs with an empty or a badly mismatched side. Never applied to held-out pairs."""
    source, target = (np.fromiter(map(len, side), np.int64, len(pairs)) for side in (pairs.sources, pairs.targets))
    short, long = np.minimum(source, target), np.maximum(source, target)
    # The 5 lets short pairs differ freely: "Hi." / "¿Qué tal estás?".
    mismatched = (short > 0) & (long + 5 > max_length_ratio * (short + 5))
    dropped = Dropped(empty=int((short == 0).sum()), mismatched=int(mismatched.sum()))
    return pairs.select((short > 0) & ~mismatched), dropped
