"""Parquet files and datasets of the Hugging Face hub, or local folders laid out like one."""

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from common.errors import UserError
from data.sources.text import Reading, Rows, SourceReport, is_text, sha256_of
from data.store.mmap_array import scratch
from data.store.sentences import BLOCK

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
WRAPPING = "An error occurred while generating the dataset"  # what datasets says before, or instead of, the fault


def read_parquet(path: Path, columns: list[str], malformed: str) -> Rows:
    """A Parquet file with the two languages as columns, or with a ``translation`` that has them."""
    import pyarrow.parquet  # here, because it costs time; and not by datasets, which takes a path for a glob pattern

    def tables() -> Iterable[Any]:
        try:
            # Mapped, because a group of rows, of which a file may have but one, is else copied into memory as a whole.
            with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
                yield file.schema_arrow.empty_table()
                for batch in file.iter_batches(BLOCK):
                    yield pyarrow.Table.from_batches([batch])
        except Exception as error:  # pyarrow's errors have no common ancestor
            raise UserError(f"cannot read {path} as Parquet: {first_line(error)}") from error

    report = yield from rows_of(tables(), str(path), columns, malformed)
    return replace(report, sha256=sha256_of(path))


def read_dataset(place: str, name: str, default_split: str, columns: list[str], malformed: str) -> Rows:
    """One split of a dataset, written NAME:CONFIG:SPLIT; ``place`` is its hub name or local folder.

    Nothing of a dataset is executed: the library has no dataset scripts any more. The SHA-256 is that of the text.
    """
    _, config, split = (*name.split(":", 2), "", "")[:3]  # a split may be train[:1000]
    if os.path.isdir(place):
        place = str(Path(place).absolute())
    tables = load_dataset(place, config or None, split or default_split)
    file = ":".join([place, config, split or default_split])
    digest = hashlib.sha256()
    reading = Reading(rows_of(tables, file, columns, malformed))
    for first, second in reading:
        digest.update(f"{first}\t{second}\n".encode())
        yield first, second
    return replace(reading.report, sha256=digest.hexdigest())


def load_dataset(place: str, config: str | None, split: str) -> Iterable[Any]:
    """The rows of a split as tables of pyarrow, an empty one first; UserError tells what to do if there are none."""
    local = os.path.isdir(place)
    if not local and not HUB_NAME.fullmatch(place):  # datasets reads every file around for a name such as text
        raise UserError(
            f"cannot read {place}: it is no .tsv, .txt, .jsonl or .parquet, no folder, and no OWNER/NAME of the hub"
        )
    import datasets  # here, because it costs 0.7 s to import

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)  # each fault is told once, below
    if not local:
        stay_offline_unless_reachable()
    try:
        # The library's cache does not notice that the files of a folder have changed. What it maps from this one stays
        # readable when the folder is gone.
        with tempfile.TemporaryDirectory(dir=scratch()) as cache:
            dataset = datasets.load_dataset(place, config, split=split, **({"cache_dir": cache} if local else {}))
    except ConnectionError as error:
        raise UserError(
            f"the dataset {place} is not on this machine and the hub cannot be reached ({first_line(error)}); "
            f"connect, or download it elsewhere (hf download --repo-type dataset {place} --local-dir FOLDER) and "
            f"name FOLDER in place of {place}, or train offline: configs/quickstart.yaml"
        ) from error
    except Exception as error:  # a missing dataset, config or split, each of another class
        wanted = f"{place}, config {config}, split {split}"
        raise UserError(f"cannot load the dataset {wanted}: {first_line(error)}") from error
    tables = dataset.with_format("arrow")
    return chain([tables[:0]], tables.iter(BLOCK))


def stay_offline_unless_reachable() -> None:
    """Ask the hub once: else the library asks for half a minute, aloud, before it looks for a copy on this machine."""
    import datasets
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # no network, no such host, no answer; or it is told to stay offline
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True


def rows_of(tables: Iterable[Any], place: str, columns: list[str], malformed: str) -> Rows:
    """Both languages of the tables' rows; the report has no SHA-256 yet."""
    number = skipped = 0
    cells = chain.from_iterable(texts_of(table, place, columns) for table in tables)
    for number, pair in enumerate(cells, start=1):
        if all(map(is_text, pair)):
            yield pair
        elif malformed == "stop":
            raise UserError(f"{place}: row {number} lacks a text. data.malformed=skip drops and counts such rows")
        else:
            skipped += 1
    return SourceReport(place, "", number, skipped)


def texts_of(table: Any, place: str, columns: list[str]) -> Iterable[tuple[Any, Any]]:
    """The cells of both languages, row by row; UserError if a column is missing, or is no UTF-8."""
    names = [f"translation.{column}" for column in columns] if "translation" in table.column_names else columns
    flat = table.flatten() if "translation" in table.column_names else table
    missing = [name for name in names if name not in flat.column_names]
    if missing:
        raise UserError(f"{place} has no column {missing[0]}, only {', '.join(flat.column_names)}; set data.columns")
    try:
        first, second = (flat.column(name).to_pylist() for name in names)
    except UnicodeDecodeError as error:
        raise UserError(f"{place} has text that is not UTF-8 ({error})") from None
    return zip(first, second, strict=True)


def first_line(error: BaseException) -> str:
    """What went wrong, on one line."""
    told = str(error).strip().removeprefix(WRAPPING).strip()
    if not told and error.__cause__:
        return first_line(error.__cause__)
    return told.partition("\n")[0] or type(error).__name__
