"""What is prepared is the corpus of the files: from the cache as read anew, never a stale one."""

import hashlib
import os
from dataclasses import replace

import pytest

import data.corpus.build
import data.prepare
from data.config import DataConfig, TokenizerConfig
from data.corpus.build import parse_sources
from data.prepare import entry_key, prepare
from data.tokens.tokenizer import Tokenizer, train

VOCABULARY = TokenizerConfig(vocab_size=300)
NAMED = {"train": ["a.tsv", "b.tsv"], "valid": "valid.tsv", "test": "test.tsv"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A corpus, and a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = {"a": (0, 90, "house"), "b": (0, 60, "river"), "valid": (90, 96, "house"), "test": (96, 99, "house")}
    for name, (first, last, word) in files.items():
        rows = "".join(f"{word} {i} {'x' * (i % 9)}\t{word[::-1]} {i}\n" for i in range(first, last))
        (tmp_path / f"{name}.tsv").write_text(rows, "utf-8")
    return tmp_path


def settings(folder, **changes):
    return DataConfig(root=str(folder), **{"row_length": 16, "batch_rows": 4, "window": 32} | NAMED | changes)


def key(config, vocabulary=VOCABULARY):
    return entry_key(config, vocabulary, parse_sources(config))


def outcome(prepared):
    """All that a run gets of a corpus."""
    stream, corpus = prepared.stream, prepared.corpus
    batches = [array.tolist() for step in range(2 * stream.steps_in(0)) for array in stream.batch(step)]
    splits = [[*pairs.sources, *pairs.targets] for pairs in (corpus.training, corpus.valid, corpus.test)]
    hashes = [corpus.hashes.source.tolist(), corpus.hashes.target.tolist()]
    return batches, splits, hashes, corpus.warnings, prepared.report, prepared.tokenizer.model


def refuse(*arguments):
    raise AssertionError("not from the cache")


CONFIGS = {
    "plain": {},
    "weights": {"weights": [1.0, 1.5]},
    "both directions": {"direction": "both"},
    "turned": {"source": "es", "target": "en"},
    "subwords": {"subword_sampling": 0.3},
    "held out": {"valid": "", "test": "", "held_out": 6},
    "overlap": {"test": "valid.tsv", "allow_overlap": ["valid/test"], "drop_overlap": True},
    "long": {"row_length": 8},  # some pairs fit no row
}


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS.keys())
def test_what_comes_from_the_cache_is_what_was_read(folder, monkeypatch, changes):
    config = settings(folder, **changes)
    with monkeypatch.context() as patch:
        patch.setattr(data.prepare, "entry_key", lambda *_: None)
        read = outcome(prepare(config, VOCABULARY, 1))
    assert not (folder / "cache").exists()
    first = outcome(prepare(config, VOCABULARY, 1))
    for name in ("build", "train", "encode_pairs"):
        monkeypatch.setattr(data.prepare, name, refuse)
    assert read == first == outcome(prepare(config, VOCABULARY, 1))


def sources_of(config):
    return list(prepare(config, VOCABULARY, 1).corpus.training.sources)


def test_a_changed_line_is_seen_though_size_and_time_are_those_of_before(folder):
    config, path = settings(folder), folder / "a.tsv"
    before, times = sources_of(config), path.stat()
    path.write_text(path.read_text().replace("house 7 ", "horse 7 ", 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    changed = [pair for pair in zip(before, sources_of(config), strict=True) if pair[0] != pair[1]]
    assert changed == [("house 7 xxxxxxx", "horse 7 xxxxxxx")]


def test_a_touched_file_or_another_batch_reads_nothing_again(folder, monkeypatch):
    config = settings(folder)
    before = prepare(config, VOCABULARY, 1)
    os.utime(folder / "a.tsv", (1, 1))
    monkeypatch.setattr(data.prepare, "build", refuse)
    for seed, changes in ((1, {"batch_rows": 8}), (1, {"window": 64}), (2, {})):
        after = prepare(replace(config, **changes), VOCABULARY, seed)
        assert list(after.corpus.training.sources) == list(before.corpus.training.sources)
        assert after.report.fingerprint != before.report.fingerprint


def test_the_key_has_every_setting_of_the_text_and_its_tokens_the_format_and_the_libraries(folder, monkeypatch):
    config = settings(folder)
    keys = {key(config), key(config, TokenizerConfig(vocab_size=301))}
    settings_of_text = {"max_length_ratio": 2.0, "drop_overlap": True, "malformed": "skip", "train": ["b.tsv", "a.tsv"],
                        "weights": [1.0, 2.0], "columns": ["es", "en"], "row_length": 32, "subword_sampling": 0.1,
                        "direction": "both"}  # fmt: skip
    keys |= {key(replace(config, **{name: value})) for name, value in settings_of_text.items()}
    keys.add(key(replace(config, source="es", target="en")))
    for name, value in (("FORMAT", 0), ("version", lambda name: "another")):
        with monkeypatch.context() as patch:
            patch.setattr(data.prepare, name, value)
            keys.add(key(config))
    for name in ("a.tsv", "b.tsv", "valid.tsv", "test.tsv"):
        with open(folder / name, "a", encoding="utf-8") as file:
            file.write("new\tnuevo\n")
        keys.add(key(config))
    assert len(keys) == 18 and None not in keys
    assert key(replace(config, batch_rows=8, window=64, prefetch=1)) == key(config)


def test_format_is_raised_when_the_meaning_of_an_entry_changes(folder):
    """If this digest changes while the libraries do not, raise FORMAT, then put in the new one."""
    corpus = prepare(settings(folder, valid="", held_out=6), VOCABULARY, 1).corpus
    parts = [corpus.training, corpus.valid, corpus.test]
    text = "\n".join(sentence for pairs in parts for side in (pairs.sources, pairs.targets) for sentence in side)
    digest = hashlib.sha256(text.encode())
    for array in (corpus.hashes.source, corpus.hashes.target):
        digest.update(array.tobytes())
    assert (data.prepare.FORMAT, digest.hexdigest()[:16]) == (3, "70d9f22a97cdd761")


def test_a_file_that_is_written_while_it_is_read_is_read_again_and_not_cached(folder, monkeypatch):
    config, calls = settings(folder), []

    def build_and_append(*arguments):
        corpus = data.corpus.build.build(*arguments)
        calls.append(1)
        if len(calls) == 1:
            with open(folder / "a.tsv", "a", encoding="utf-8") as file:
                file.write("new\tnuevo\n")
        return corpus

    monkeypatch.setattr(data.prepare, "build", build_and_append)
    assert sources_of(config)[90] == "new"
    assert sources_of(config)[90] == "new"
    assert len(calls) == 3


def test_a_dataset_of_the_hub_has_no_key_and_a_folder_that_of_its_files(folder):
    assert key(settings(folder, train=["owner/name"])) is None
    (folder / "parts").mkdir()
    keys = []
    for name in ("one.tsv", "two.tsv"):
        (folder / "parts" / name).write_text("a\tb\n")
        keys.append(key(settings(folder, train=["parts"])))
    assert None not in keys and keys[0] != keys[1]


def test_a_tokenizer_that_is_given_is_used_and_shares_the_entry_of_its_corpus(folder, monkeypatch):
    config, entries = settings(folder), folder / "cache" / "puente" / "corpora"
    first = prepare(config, VOCABULARY, 1)
    monkeypatch.setattr(data.prepare, "train", refuse)
    again = prepare(config, VOCABULARY, 1, first.tokenizer)
    assert again.tokenizer is first.tokenizer and again.report == first.report
    assert len(list(entries.glob("*/"))) == 1
    other = Tokenizer(train(first.corpus.training, TokenizerConfig(vocab_size=310)))
    for _ in range(2):
        kept = prepare(config, VOCABULARY, 1, other)
        assert kept.report.tokenizer.vocab_size == 310 and kept.tokenizer is other
        assert len(list(entries.glob("*/"))) == 2
        monkeypatch.setattr(data.prepare, "build", refuse)
    assert prepare(config, VOCABULARY, 1).report == first.report
