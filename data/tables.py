"""Parquet files and datasets of the Hugging Face hub, or local folders laid out like one."""

import hashlib
import logging
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.readers import Columns, SourceReport, is_text, sha256_of

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
WRAPPING = "An error occurred while generating the dataset"  # what datasets says before, or instead of, the fault


def read_parquet(path: Path, columns: list[str], malformed: str) -> tuple[Columns, SourceReport]:
    """A Parquet file with the two languages as columns, or with a ``translation`` that has them."""
    import pyarrow.parquet  # here, because it costs time; and not by datasets, which takes a path for a glob pattern

    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except Exception as error:  # pyarrow's errors have no common ancestor
        raise UserError(f"cannot read {path} as Parquet: {first_line(error)}") from error
    texts, skipped = columns_of(table, str(path), columns, malformed)
    return texts, SourceReport(str(path), sha256_of(path), table.num_rows, skipped)


def read_dataset(
    place: str, name: str, default_split: str, columns: list[str], malformed: str
) -> tuple[Columns, SourceReport]:
    """One split of a dataset, written NAME:CONFIG:SPLIT; ``place`` is its hub name or local folder.

    Nothing of a dataset is executed: the library has no dataset scripts any more. The SHA-256 is that of the text.
    """
    _, config, split = (*name.split(":", 2), "", "")[:3]  # a split may be train[:1000]
    if os.path.isdir(place):
        place = str(Path(place).absolute())
    table = load_dataset(place, config or None, split or default_split)
    file = ":".join([place, config, split or default_split])
    texts, skipped = columns_of(table, file, columns, malformed)
    digest = hashlib.sha256()
    for first, second in zip(*texts, strict=True):
        digest.update(f"{first}\t{second}\n".encode())
    return texts, SourceReport(file, digest.hexdigest(), table.num_rows, skipped)


def load_dataset(place: str, config: str | None, split: str) -> Any:
    """The rows of a split as a table of pyarrow; UserError tells what to do when they cannot be had."""
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
        # The library's cache does not notice that the files of a folder have changed.
        with tempfile.TemporaryDirectory() as cache:
            options = {"cache_dir": cache, "keep_in_memory": True} if local else {}
            return datasets.load_dataset(place, config, split=split, **options).with_format("arrow")[:]
    except ConnectionError as error:
        raise UserError(
            f"the dataset {place} is not on this machine and the hub cannot be reached ({first_line(error)}); "
            f"connect, or download it elsewhere (hf download --repo-type dataset {place} --local-dir FOLDER) and "
            f"name FOLDER in place of {place}, or train offline: configs/quickstart.yaml"
        ) from error
    except Exception as error:  # a missing dataset, config or split, each of another class
        wanted = f"{place}, config {config}, split {split}"
        raise UserError(f"cannot load the dataset {wanted}: {first_line(error)}") from error


def stay_offline_unless_reachable() -> None:
    """Ask the hub once: else the library asks for half a minute, aloud, before it looks for a copy on this machine."""
    import datasets
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # no network, no such host, no answer; or it is told to stay offline
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True


def columns_of(table: Any, place: str, columns: list[str], malformed: str) -> tuple[Columns, int]:
    """Both languages of a table as text, and the number of rows skipped because one is not there."""
    names = [f"translation.{column}" for column in columns] if "translation" in table.column_names else columns
    flat = table.flatten() if "translation" in table.column_names else table
    missing = [name for name in names if name not in flat.column_names]
    if missing:
        raise UserError(f"{place} has no column {missing[0]}, only {', '.join(flat.column_names)}; set data.columns")
    try:
        first, second = (flat.column(name).to_pylist() for name in names)
    except UnicodeDecodeError as error:
        raise UserError(f"{place} has text that is not UTF-8 ({error})") from None
    rows = [index for index, pair in enumerate(zip(first, second, strict=True)) if all(map(is_text, pair))]
    if malformed == "stop" and len(rows) < len(first):
        row = next(index for index, found in enumerate([*rows, -1]) if index != found)
        raise UserError(f"{place}: row {row + 1} lacks a text. data.malformed=skip drops and counts such rows")
    return ([first[i] for i in rows], [second[i] for i in rows]), len(first) - len(rows)


def first_line(error: BaseException) -> str:
    """What went wrong, on one line."""
    told = str(error).strip().removeprefix(WRAPPING).strip()
    if not told and error.__cause__:
        return first_line(error.__cause__)
    return told.partition("\n")[0] or type(error).__name__
