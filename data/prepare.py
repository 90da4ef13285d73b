"""From a config to everything that training needs of the corpus, and its record in the run directory."""

from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import UserError
from common.files import sha256, write_atomically
from data.assemble import Corpus, assemble, pair_weights
from data.batches.stream import BatchStream
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs, as_tsv, concatenate
from data.report import DATA_FILE, DataIdentity, DataReport, Dropped, Sides, Vocabulary, load_identity
from data.sources.corpus import held_out_path
from data.splits.overlap import save_hashes
from data.tokenizer import Tokenizer, has_checkpoints, train_or_load_tokenizer


@dataclass(frozen=True)
class Prepared:
    """The training batches, the validation pairs, the tokenizer, and the report on them for ``data.json``.

    ``changes`` has a line for each harmless or allowed difference from the data of the run's checkpoints.
    """

    stream: BatchStream
    valid: Pairs
    tokenizer: Tokenizer
    report: DataReport
    changes: list[str]
    taken_out: dict[str, str]  # held-out sets taken out of the training pairs, as the text of their files
    training: Pairs  # with the pairs that are too long for a row

    def save(self, run_dir: Path) -> None:
        """Write tokenizer, taken-out sets, hashes of the training sentences and, last, ``data.json``."""
        for split, content in self.taken_out.items():
            write_atomically(held_out_path(run_dir, split), content)
        self.tokenizer.save(run_dir)
        save_hashes(run_dir, self.training)
        write_atomically(run_dir / DATA_FILE, self.report.as_json())


def prepare(
    config: DataConfig, tokenizer_config: TokenizerConfig, seed: int, run_dir: Path, allow_changes: bool = False
) -> Prepared:
    """Load, filter, check, tokenize and pack; write nothing but the cache of row counts.

    A run with checkpoints keeps its tokenizer. UserError if its data changed, unless the change affects only further
    training and ``allow_changes`` is true.
    """
    corpus = assemble(config, run_dir)
    training = concatenate(corpus.sources)
    tokenizer = train_or_load_tokenizer(run_dir, training, tokenizer_config, keep_existing=True)
    weights = pair_weights(config, corpus.sources)
    stream = BatchStream(training, tokenizer, config, seed, run_dir / "row_counts.json", weights)
    taken_out = taken_out_files(config, corpus)
    valid, test = (
        replace(report, sha256=sha256(taken_out[split])) if split in taken_out else report
        for split, report in (("valid", corpus.files.valid), ("test", corpus.files.test))
    )
    files = replace(corpus.files, valid=valid, test=test)
    digests = {"train": [source.sha256 for source in files.train], "valid": [valid.sha256], "test": [test.sha256]}
    vocabulary = Vocabulary(sha256(tokenizer.model), tokenizer.vocab_size)
    identity = DataIdentity(vocabulary.sha256, stream.fingerprint, digests, stream.pairs)
    changes = find_changes(run_dir, identity, allow_changes) if has_checkpoints(run_dir) else []
    report = DataReport(
        direction=f"{config.source}-{config.target}",
        files=files,
        dropped=files.dropped() + Dropped(over_long=stream.over_long),
        training_pairs=stream.pairs,
        overlap=corpus.overlap,
        tokenizer=vocabulary,
        row_lengths=Sides(*stream.row_lengths),
        fingerprint=stream.fingerprint,
        fill=Sides(*stream.fill()),
    )
    return Prepared(stream, corpus.valid, tokenizer, report, changes, taken_out, training)


def taken_out_files(config: DataConfig, corpus: Corpus) -> dict[str, str]:
    """The text of the sets taken out of the training pairs, by split, with the columns of the corpus."""
    is_reversed = config.source != config.columns[0]
    sets = {"valid": (config.valid, corpus.valid), "test": (config.test, corpus.test)}
    return {
        split: as_tsv(pairs.targets, pairs.sources) if is_reversed else as_tsv(pairs.sources, pairs.targets)
        for split, (name, pairs) in sets.items()
        if not name
    }


def find_changes(run_dir: Path, new: DataIdentity, allow_changes: bool) -> list[str]:
    """A line "what: old → new (kind)" for each change of a run's data. UserError unless the run may continue."""
    old = load_identity(run_dir)
    if old is None:
        lost = f"{run_dir / DATA_FILE} is missing or damaged, so the training data cannot be compared with the run's"
        if not allow_changes:
            raise UserError(f"{lost}; bring it back, or continue all the same with allow_changes=true")
        return [lost]
    incompatible = [
        *compare("tokenizer", [old.tokenizer], [new.tokenizer]),
        *compare("data.valid", old.files["valid"], new.files["valid"]),
    ]
    if incompatible:
        lines = "; ".join(incompatible)
        raise UserError(f"the data of {run_dir} changed: {lines} (incompatible): undo it, or set run_dir=NEW_FOLDER")
    harmless = [f"{line} (harmless)" for line in compare("data.test", old.files["test"], new.files["test"])]
    if old.fingerprint == new.fingerprint:
        return harmless
    changes = [
        *compare("data.train", old.files["train"], new.files["train"]),
        f"training batches: fingerprint {old.fingerprint[:8]} → {new.fingerprint[:8]}",
        f"training pairs: {old.training_pairs} → {new.training_pairs}",
    ]
    if not allow_changes:
        raise UserError(
            f"the training data of {run_dir} changed since its checkpoints: {'; '.join(changes)} (changes the "
            "training). Undo it, set run_dir=NEW_FOLDER, or go on with the new data: allow_changes=true"
        )
    return [*harmless, *(f"{line} (changes the training)" for line in changes)]


def compare(what: str, old: list[str], new: list[str]) -> list[str]:
    """One line if the SHA-256s differ, else none."""
    before, after = (", ".join(digest[:8] for digest in digests) for digests in (old, new))
    return [] if old == new else [f"{what}: SHA-256 {before} → {after}"]
