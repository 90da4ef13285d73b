"""What a run stores of its corpus: tokenizer, report, held-out sets, and hashes of its sentences (not their text)."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.files import (
    open_atomically,
    open_regular,
    read_json,
    read_json_object,
    read_small,
    sha256,
    write_atomically,
)
from data.batches.packing import Capacity
from data.batches.stream import BatchStream, Start
from data.config import DataConfig, TokenizerConfig
from data.corpus.build import as_file
from data.corpus.report import SPLITS, DataReport, Sides
from data.corpus.splits import Hashes, hash_sentences
from data.long_lines import Usual
from data.pairs import Pairs
from data.prepare import Prepared, prepare
from data.sources.report import SourceReport
from data.sources.source import load_source
from data.tokens.tokenizer import Tokenizer
from training.run.config_history import find_record
from training.run.layout import DATA, TOKENIZER, TOKENIZER_CHECK, TRAINING_SENTENCES, held_out_path
from training.run.retention import has_checkpoints
from training.run.row_counts import RowCounts, load_row_counts


@dataclass(frozen=True)
class DataIdentity:
    """Detects changes in a run's data: SHA-256s of tokenizer, batches (fingerprint) and files by split."""

    tokenizer: str
    fingerprint: str
    files: dict[str, list[str]]
    training_pairs: int


def prepare_for_run(
    run_dir: Path,
    config: DataConfig,
    tokenizer_config: TokenizerConfig,
    seed: int,
    tokenizer: Tokenizer | None = None,
) -> Prepared:
    """``prepare`` for a run; writes nothing to its directory. A run with checkpoints keeps its tokenizer."""
    tokenizer = load_tokenizer(run_dir) if has_checkpoints(run_dir) else tokenizer
    prepared = prepare(config, tokenizer_config, seed, tokenizer)
    prepared.stream.windows.row_counts |= load_row_counts(run_dir, prepared.stream.fingerprint)
    files = prepared.report.files
    valid, test = (
        report if report.file else replace(report, file=str(held_out_path(run_dir, split)))
        for split, report in (("valid", files.valid), ("test", files.test))
    )
    return replace(prepared, report=replace(prepared.report, files=replace(files, valid=valid, test=test)))


def save_corpus(run_dir: Path, prepared: Prepared) -> None:
    """Write what the run stores, ``data.json`` last. From then on, new row counts are also written to the run."""
    corpus, windows = prepared.corpus, prepared.stream.windows
    windows.row_counts = RowCounts(run_dir, prepared.stream.fingerprint, windows.row_counts)
    for split, pairs, report in (("valid", corpus.valid, corpus.files.valid), ("test", corpus.test, corpus.files.test)):
        if not report.file:
            write_atomically(held_out_path(run_dir, split), as_file(prepared.stream.config, pairs))
    save_tokenizer(run_dir, prepared.tokenizer)
    save_hashes(run_dir, with_earlier(run_dir, corpus.hashes) if has_checkpoints(run_dir) else corpus.hashes)
    write_atomically(run_dir / DATA, prepared.report.as_json())


def save_tokenizer(run_dir: Path, tokenizer: Tokenizer) -> None:
    """Write the vocabulary, then a file with its hash, to show that the two belong together."""
    write_atomically(run_dir / TOKENIZER, tokenizer.model)
    write_atomically(run_dir / TOKENIZER_CHECK, json.dumps({"sha256": sha256(tokenizer.model)}) + "\n")


def load_tokenizer(run_dir: Path) -> Tokenizer:
    """The tokenizer of a run; UserError if it is missing or damaged."""
    try:
        model, saved = read_small(run_dir / TOKENIZER), read_json(run_dir / TOKENIZER_CHECK)
        if saved["sha256"] == sha256(model):
            return Tokenizer(model)
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise UserError(f"{run_dir} has no {missing}: is it the directory of a training run?") from error
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):
        pass
    raise UserError(
        f"{run_dir / TOKENIZER} and {TOKENIZER_CHECK} do not belong together: one of them is damaged; bring both back"
    )


def load_held_out(config: DataConfig, split: str, run_dir: Path) -> tuple[Pairs, SourceReport]:
    """Load a run's ``valid`` or ``test`` set: the source named in the config, or the set held out from training.

    UserError if a held-out set is not the one recorded in ``data.json``.
    """
    if name := config.valid if split == "valid" else config.test:
        return load_source(config, name, split)
    as_written = replace(config, columns=list(config.languages), header="keep", quoting="keep", encoding="utf-8")
    pairs, report = load_source(as_written, str(held_out_path(run_dir, split).absolute()), split)
    recorded = load_identity(run_dir / DATA)
    if recorded is None or recorded.files[split] != [report.sha256]:
        raise UserError(f"{report.file} is not the set recorded in {run_dir / DATA}: bring both files back")
    return pairs, report


def load_usual_source(run_dir: Path) -> Usual | None:
    """The typical size of the run's sources according to ``data.json``; None for a run older than this record."""
    facts = read_json_object(run_dir / DATA)
    if not facts and (run_dir / DATA).exists():
        raise UserError(f"{run_dir / DATA} is damaged; it says which sentences to translate whole: bring it back")
    try:
        found = Usual(**facts["usual_source"])
        return found if min(found.sentences, found.tokens - 1) >= 1 else None
    except (KeyError, TypeError):
        return None


def save_hashes(run_dir: Path, hashes: Sides[Hashes]) -> None:
    """Write the hashes of the training sentences, so that later test sets can be compared with them."""
    with open_atomically(run_dir / TRAINING_SENTENCES) as file:
        np.savez(file, source=hashes.source, target=hashes.target)


def with_earlier(run_dir: Path, hashes: Sides[Hashes]) -> Sides[Hashes]:
    """These hashes and the run's: its parameters have also seen the sentences of an earlier corpus."""
    with suppress(UserError):  # missing or damaged: these are all that is known
        known = load_hashes(run_dir)
        both = ((known.source, hashes.source), (known.target, hashes.target))
        return Sides(*(new if np.array_equal(old, new) else np.union1d(old, new) for old, new in both))
    return hashes


def load_hashes(run_dir: Path) -> Sides[Hashes]:
    """Read what ``save_hashes`` wrote, never unpickled; UserError if it is missing or damaged."""
    path = run_dir / TRAINING_SENTENCES
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as arrays:
            sides = Sides(arrays["source"], arrays["target"])
        if {(side.dtype, side.ndim) for side in (sides.source, sides.target)} == {(np.dtype(np.uint64), 1)}:
            return sides
    except FileNotFoundError as error:
        raise UserError(f"{run_dir} has no {TRAINING_SENTENCES}: is it the directory of a training run?") from error
    except Exception:  # from zipfile, zlib and NumPy, with no common base class
        pass
    raise UserError(f"{path} is damaged: continue the run with train.py, which writes it again")


def overlap_with_training(run_dir: Path, sources: Iterable[str], targets: Iterable[str]) -> tuple[int, int]:
    """How many distinct folded sources and targets are among the run's training sentences on the same side."""
    known = load_hashes(run_dir)
    source, target = (
        int(np.isin(hash_sentences(sentences), hashes, assume_unique=True).sum())
        for sentences, hashes in ((sources, known.source), (targets, known.target))
    )
    return source, target


def identify(report: DataReport) -> DataIdentity:
    """The identity of the data that a report describes."""
    train = [account.sha256 for account in report.files.train]
    files = {"train": train, "valid": [report.files.valid.sha256], "test": [report.files.test.sha256]}
    return DataIdentity(report.tokenizer.sha256, report.fingerprint, files, report.training_pairs)


def load_identity(record: Path) -> DataIdentity | None:
    """The identity in a run's ``data.json`` or in an earlier record; None if it is missing or damaged."""
    try:
        facts = read_json_object(record)
        files = {split: [source["sha256"] for source in facts["files"][split]] for split in SPLITS}
        found = DataIdentity(facts["tokenizer"]["sha256"], facts["fingerprint"], files, facts["training_pairs"])
    except (KeyError, TypeError):
        return None
    digests = [found.tokenizer, found.fingerprint, *chain.from_iterable(files.values())]
    return found if all(isinstance(digest, str) for digest in digests) else None


def load_start(record: Path) -> Start:
    """Where the batches of a record begin; in older runs, at the start of the data."""
    facts = read_json_object(record).get("start")
    try:
        return Start() if facts is None else Start(**facts)
    except TypeError:
        raise UserError(f"{record} is damaged; it says where the run is in its data: bring it back") from None


def load_row_lengths(record: Path) -> Capacity | None:
    """The lengths (S, T) of a record's rows; None for older runs."""
    try:
        lengths = read_json_object(record)["row_lengths"]
        return int(lengths["source"]), int(lengths["target"])
    except (KeyError, TypeError, ValueError):
        return None


def start_after_change(run_dir: Path, step: int, before: DataConfig, seed: int, prepared: Prepared) -> Start:
    """Where to continue after ``step`` if the batches up to then were different.

    If only the number of rows per batch differs, with the rest of the epoch; with the same tokens in other rows, at
    the start of the epoch; with another corpus, at its first epoch.
    """
    record, stream = find_record(run_dir, DATA, step), prepared.stream
    encoded = replace(stream.encoded, row_lengths=load_row_lengths(record) or stream.row_lengths)
    known, old = load_identity(record), BatchStream(encoded, prepared.tokenizer, before, seed)
    if known is None or old.fingerprint != known.fingerprint:
        return Start(step)
    old.windows.row_counts |= load_row_counts(run_dir, old.fingerprint)
    old = old.starting_at(load_start(record))
    epoch, index = old.epoch_of(step)
    resized = replace(before, batch_rows=stream.config.batch_rows)
    has_same_rows = BatchStream(stream.encoded, prepared.tokenizer, resized, seed).fingerprint == stream.fingerprint
    return Start(step, epoch, old.row_of(epoch, index) if has_same_rows else 0)


def describe_start(start: Start) -> str:
    if start.row:
        return f"the rest of epoch {start.epoch + 1}, from its row {start.row + 1} on"
    return f"epoch {start.epoch + 1}, from its beginning"


def find_changes(records: Sequence[Path], new: DataIdentity, allow_changes: bool) -> list[str]:
    """A line "what: old → new (kind)" for each change from the data of a run's last record.

    There are none if the data match any of the ``records``. UserError unless the run may continue: the change must
    affect only further training, and ``allow_changes`` must be true.
    """
    known, run_dir = [load_identity(record) for record in records], records[-1].parent
    old = new if new in known else known[-1]
    if old is None:
        lost = f"{records[-1]} is missing or damaged, so the training data cannot be compared with the run's"
        if not allow_changes:
            raise UserError(f"{lost}; bring it back, or continue anyway with allow_changes=true")
        return [f"{lost} (changes the training)"]
    for line in describe_change("tokenizer", [old.tokenizer], [new.tokenizer]):
        raise UserError(f"the data of {run_dir} changed: {line} (incompatible): undo it, or set run_dir=NEW_FOLDER")
    harmless = [f"{line} (harmless)" for line in describe_change("data.test", old.files["test"], new.files["test"])]
    validation = describe_change("data.valid", old.files["valid"], new.files["valid"])
    changes = [f"{line} (changes the validation)" for line in validation]
    if old.fingerprint != new.fingerprint:
        training = [
            *describe_change("data.train", old.files["train"], new.files["train"]),
            f"training batches: fingerprint {old.fingerprint[:8]} → {new.fingerprint[:8]}",
            f"training pairs: {old.training_pairs} → {new.training_pairs}",
        ]
        changes += [f"{line} (changes the training)" for line in training]
    if changes and not allow_changes:
        raise UserError(
            f"the data of {run_dir} changed since its checkpoints: {'; '.join(changes)}. Undo it, set "
            "run_dir=NEW_FOLDER, or continue with the new data: allow_changes=true"
        )
    return harmless + changes


def describe_change(what: str, old: list[str], new: list[str]) -> list[str]:
    """One line if the SHA-256s differ, else none."""
    before, after = (", ".join(digest[:8] for digest in digests) for digests in (old, new))
    return [] if old == new else [f"{what}: SHA-256 {before} → {after}"]
