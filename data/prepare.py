"""From a config to everything that training needs of the corpus, and its record in the run directory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import UserError
from common.files import sha256, write_atomically
from data.batches.stream import BatchStream
from data.config import DataConfig, TokenizerConfig
from data.corpus.report import DATA_FILE, DataIdentity, DataReport, Sides, Vocabulary, load_identity
from data.corpus.splits import save_hashes, with_earlier
from data.corpus.word_counts import save_word_counts
from data.kept_corpus import KnownCorpus, load_corpus
from data.pairs import Pairs
from data.sources.corpus import held_out_path
from data.tokens.tokenizer import Tokenizer, has_checkpoints, train_or_load_tokenizer


@dataclass(frozen=True)
class Prepared:
    """The training batches, the validation pairs, the tokenizer, and the report on them for ``data.json``.

    ``changes`` has a line for each harmless or allowed difference from the data of the run's checkpoints.
    """

    stream: BatchStream
    corpus: KnownCorpus
    tokenizer: Tokenizer
    report: DataReport
    changes: list[str]

    @property
    def valid(self) -> Pairs:
        return self.corpus.valid

    def save(self, run_dir: Path) -> None:
        """Write all that describes the data, ``data.json`` last."""
        self.stream.hold_row_counts(False)
        for split, content in self.corpus.taken_out.items():
            write_atomically(held_out_path(run_dir, split), content)
        self.tokenizer.save(run_dir)
        hashes = self.corpus.hashes
        save_hashes(run_dir, with_earlier(run_dir, hashes) if has_checkpoints(run_dir) else hashes)
        save_word_counts(run_dir, self.corpus.words)
        write_atomically(run_dir / DATA_FILE, self.report.as_json())


def prepare(
    config: DataConfig,
    tokenizer_config: TokenizerConfig,
    seed: int,
    run_dir: Path,
    allow_changes: bool = False,
    records: Sequence[str] = (DATA_FILE,),
) -> Prepared:
    """Load, filter, check, tokenize and pack; write nothing.

    A run with checkpoints keeps its tokenizer. UserError if its data is not that of any of the ``records`` in
    ``run_dir``, unless the change from the last one affects only further training and ``allow_changes`` is true.
    """
    corpus = load_corpus(config, run_dir)
    tags = tag_languages(config)
    tokenizer = train_or_load_tokenizer(
        run_dir, corpus.training, tokenizer_config, languages=tags, keep_existing=True, corpus_key=corpus.key
    )
    row_counts = run_dir / "row_counts.json"
    stream = BatchStream(corpus.training, tokenizer, config, seed, row_counts, corpus.weights, corpus.key)
    stream.hold_row_counts(True)  # until ``save``: a run that is refused stays as it was
    report = DataReport(
        direction=", ".join(f"{direction.source}-{direction.target}" for direction in config.directions),
        files=corpus.files,
        dropped=corpus.files.dropped(stream.over_long),
        training_pairs=stream.pairs,
        overlap=corpus.overlap,
        tokenizer=Vocabulary(sha256(tokenizer.model), tokenizer.vocab_size),
        row_lengths=Sides(*stream.row_lengths),
        fingerprint=stream.fingerprint,
        fill=Sides(*stream.fill()),
    )
    changes = find_changes(run_dir, records, report.identity(), allow_changes) if has_checkpoints(run_dir) else []
    return Prepared(stream, corpus, tokenizer, report, changes)


def tag_languages(config: DataConfig) -> list[str]:
    """The languages that need a tag in the vocabulary."""
    return [direction.target for direction in config.directions] if len(config.directions) > 1 else []


def find_changes(run_dir: Path, records: Sequence[str], new: DataIdentity, allow_changes: bool) -> list[str]:
    """A line "what: old → new (kind)" for each change of a run's data. UserError unless the run may continue."""
    known = [load_identity(run_dir, record) for record in records]
    old = new if new in known else known[-1]
    if old is None:
        lost = f"{run_dir / records[-1]} is missing or damaged, so the training data cannot be compared with the run's"
        if not allow_changes:
            raise UserError(f"{lost}; bring it back, or continue all the same with allow_changes=true")
        return [lost]
    for line in compare("tokenizer", [old.tokenizer], [new.tokenizer]):
        raise UserError(f"the data of {run_dir} changed: {line} (incompatible): undo it, or set run_dir=NEW_FOLDER")
    harmless = [f"{line} (harmless)" for line in compare("data.test", old.files["test"], new.files["test"])]
    validation = compare("data.valid", old.files["valid"], new.files["valid"])
    changes = [f"{line} (changes the validation)" for line in validation]
    if old.fingerprint != new.fingerprint:
        training = [
            *compare("data.train", old.files["train"], new.files["train"]),
            f"training batches: fingerprint {old.fingerprint[:8]} → {new.fingerprint[:8]}",
            f"training pairs: {old.training_pairs} → {new.training_pairs}",
        ]
        changes += [f"{line} (changes the training)" for line in training]
    if changes and not allow_changes:
        raise UserError(
            f"the data of {run_dir} changed since its checkpoints: {'; '.join(changes)}. Undo it, set "
            "run_dir=NEW_FOLDER, or go on with the new data: allow_changes=true"
        )
    return harmless + changes


def compare(what: str, old: list[str], new: list[str]) -> list[str]:
    """One line if the SHA-256s differ, else none."""
    before, after = (", ".join(digest[:8] for digest in digests) for digests in (old, new))
    return [] if old == new else [f"{what}: SHA-256 {before} → {after}"]
