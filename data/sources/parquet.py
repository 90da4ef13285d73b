"""Parquet files, and datasets on the Hugging Face hub or in local folders with the same layout."""

import hashlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from common.errors import DISK_FULL, UserError, explain_os_error
from common.files import sha256_of_file
from data.config import DataConfig
from data.sentences import BLOCK, scratch_folder
from data.sources.jsonl import check_texts, suggest
from data.sources.lines import Malformed
from data.sources.text import Row, RowReader, Rows, parse_rows

HUB_SPLITS = {"train": "train", "valid": "validation", "test": "test"}  # their names in hub datasets
WRAPPING = "An error occurred while generating the dataset"  # datasets prints this before the actual error, or alone


def read_parquet(config: DataConfig, path: Path) -> Rows:
    """Read a Parquet file with the two languages as columns, or inside a ``translation``."""
    import pyarrow.parquet  # imported late because it is slow; datasets would treat the path as a glob pattern

    def tables() -> Iterable[Any]:
        try:
            # Mapped, because otherwise a row group, which may be the whole file, would be copied into memory.
            with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
                yield file.schema_arrow.empty_table()
                for batch in file.iter_batches(BLOCK):
                    yield pyarrow.Table.from_batches([batch])
        except Exception as error:  # pyarrow's errors have no common base class
            raise UserError(f"cannot read {path} as Parquet: {first_line(error)}") from error

    return read_tables(config, tables(), str(path), partial(sha256_of_file, path))


def find_folder(config: DataConfig, name: str) -> Path | None:
    """The folder of a dataset NAME:CONFIG:SPLIT, in ``data.root`` or else here; None for a dataset on the hub."""
    place = name.partition(":")[0]
    return next((path.absolute() for path in (Path(config.root) / place, Path(place)) if os.path.isdir(path)), None)


def read_dataset(config: DataConfig, name: str, default_split: str) -> Rows:
    """Read one split of a dataset on the hub or in a folder, written NAME:CONFIG:SPLIT.

    No code from the dataset is executed: the library no longer supports dataset scripts. The SHA-256 is of the text.
    """
    hub_name, part, split = (*name.split(":", 2), "", "")[:3]  # a split may be train[:1000]
    place, split = str(find_folder(config, name) or hub_name), split or HUB_SPLITS[default_split]
    tables, file = load_dataset(place, part or None, split), ":".join([place, part, split])
    digest = hashlib.sha256()
    reader = RowReader(read_tables(config, tables, file, digest.hexdigest))
    for first, second in reader:
        digest.update(f"{first}\t{second}\n".encode())
        yield first, second
    return reader.report


def load_dataset(place: str, config: str | None, split: str) -> Iterable[Any]:
    """The rows of a split as pyarrow tables, an empty one first; UserError if they cannot be loaded."""
    is_local = os.path.isdir(place)
    import datasets  # imported late: it takes 0.7 s

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(logging.CRITICAL)  # errors are reported below, once
    if not is_local:
        go_offline_unless_reachable()
    try:
        # The library's cache misses changes to the files in a folder, so a folder gets its own cache. Data mapped from
        # it stays readable after its removal.
        with tempfile.TemporaryDirectory(dir=scratch_folder()) as cache:
            options: dict[str, Any] = {"cache_dir": cache} if is_local else {}
            builder = datasets.load_dataset_builder(place, config, **options)
            if "na_filter" in vars(builder.config):
                # For CSV: pandas would read words such as None and nan as missing cells, and the first cells of rows
                # longer than the header as an index.
                options |= {"na_filter": False, "index_col": False}
                builder = datasets.load_dataset_builder(place, config, **options)
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "Length of header")
                builder.download_and_prepare()
            dataset = builder.as_dataset(split)
    except ConnectionError as error:
        problem = f"the dataset {place} is not on this machine and the hub cannot be reached ({first_line(error)})"
        download = f"download it elsewhere (hf download --repo-type dataset {place} --local-dir FOLDER)"
        advice = f"connect, or {download} and name FOLDER instead of {place}"
        raise UserError(f"{problem}; {advice}, or train offline: configs/quickstart.yaml") from error
    except Exception as error:  # a missing dataset, config or split, each with its own exception class
        fault = error.__cause__ or error
        if isinstance(fault, OSError) and fault.errno in DISK_FULL:
            folder, name = (scratch_folder(), "TMPDIR") if is_local else (datasets.config.HF_DATASETS_CACHE, "HF_HOME")
            raise UserError(f"cannot write {folder}: {explain_os_error(fault)}, or set {name}=FOLDER") from error
        wanted = f"{place}, config {config}, split {split}"
        raise UserError(f"cannot load the dataset {wanted}: {first_line(error)}") from error
    tables = dataset.with_format("arrow")
    return chain([tables[:0]], tables.iter(BLOCK))


def go_offline_unless_reachable() -> None:
    """Try the hub once: the library would retry for half a minute, with warnings, before it looks for a local copy."""
    import datasets
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # no network, host or answer, or offline mode
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True


def read_tables(config: DataConfig, tables: Iterable[Any], place: str, digest: Callable[[], str]) -> Rows:
    """Read both languages from pyarrow tables."""

    def parse(cells: tuple[Any, Any], number: int) -> Row:
        try:
            return check_texts(config, cells)
        except Malformed as problem:
            raise Malformed(f"{place}: row {number}: {problem}") from None

    cells = chain.from_iterable(read_cells(config, table, place) for table in tables)
    return parse_rows(config, place, enumerate(cells, 1), parse, digest, "rows")


def read_cells(config: DataConfig, table: Any, place: str) -> Iterable[tuple[Any, Any]]:
    """The cells of both languages by row; UserError if a column is missing, not text or not UTF-8."""
    given, wanted = set(table.column_names), set(config.languages)
    inside = "" if wanted <= given or "translation" not in given - wanted else "translation."
    names = [inside + language for language in config.languages]
    flat = table.flatten() if inside else table
    if repeated := [name for name in names if flat.column_names.count(name) > 1]:
        raise UserError(f"{place} has {flat.column_names.count(repeated[0])} columns {repeated[0]}: rename the others")
    types = dict(zip(flat.column_names, map(str, flat.schema.types), strict=True))
    if missing := [name for name in names if name not in types]:
        texts = [name.removeprefix(inside) for name in types if name.startswith(inside) and "string" in types[name]]
        advice = f": {settings}" if (settings := suggest(config, texts)) else "; set data.columns"
        raise UserError(f"{place} has no column {missing[0]}, only {', '.join(types)}{advice}")
    if others := [name for name in names if "string" not in types[name] and types[name] != "null"]:
        column = f"its column {others[0]} holds {types[others[0]]}, not text"
        raise UserError(f"{place}: {column}; data.columns names others")
    try:
        first, second = (flat.column(name).to_pylist() for name in names)
    except UnicodeDecodeError as error:
        raise UserError(f"{place} has text that is not UTF-8 ({error})") from None
    return zip(first, second, strict=True)


def first_line(error: BaseException) -> str:
    message = str(error).strip().removeprefix(WRAPPING).strip()
    if not message and error.__cause__:
        return first_line(error.__cause__)
    return message.partition("\n")[0] or type(error).__name__
