"""A corpus from the cache is the corpus of its files: the same report, pairs and batches, and never a stale one."""

import os
from dataclasses import replace

import numpy as np
import pytest

import data.batches.windows
import data.corpus.build
import data.kept_corpus
import data.tokens.tokenizer
from common.errors import UserError
from data.config import DataConfig, TokenizerConfig
from data.kept_corpus import corpus_key, load_corpus
from data.prepare import prepare

VOCABULARY = TokenizerConfig(vocab_size=300)
NAMED = {"train": ["a.tsv", "b.tsv"], "valid": "valid.tsv", "test": "test.tsv"}


def write_rows(path, first, last, word):
    path.write_text("".join(f"{word} {i} {'x' * (i % 9)}\t{word[::-1]} {i}\n" for i in range(first, last)), "utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A corpus, and a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, first, last, word in (
        ("a", 0, 90, "house"),
        ("b", 0, 60, "river"),
        ("valid", 90, 96, "house"),
        ("test", 96, 99, "house"),
    ):
        write_rows(tmp_path / f"{name}.tsv", first, last, word)
    return tmp_path


def settings(folder, **changes):
    return DataConfig(root=str(folder), **{"row_length": 16, "batch_rows": 4, "window": 32} | NAMED | changes)


def outcome(prepared, run_dir):
    """All that training gets of a corpus, and all that it writes."""
    prepared.save(run_dir)
    stream = prepared.stream
    arrays = [array.tolist() for step in range(2 * stream.steps_in(0)) for array in stream.batch(step)]
    files = {
        str(path.relative_to(run_dir)): [load(path)] if path.suffix == ".npz" else path.read_bytes()
        for path in sorted(run_dir.rglob("*"))
        if path.is_file()
    }
    valid = [*zip(prepared.valid.sources, prepared.valid.targets, strict=True)]
    return arrays, files, valid, prepared.corpus.warnings, [*stream.encoded.texts.sources]


def load(path):
    with np.load(path, allow_pickle=False) as arrays:
        return {name: array.tolist() for name, array in arrays.items()}


def refuse(*arguments, **options):
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
def test_what_is_kept_is_what_was_read(folder, monkeypatch, changes):
    config = settings(folder, **changes)
    monkeypatch.setattr(data.kept_corpus, "corpus_key", lambda config: None)
    read = outcome(prepare(config, VOCABULARY, 1, folder / "run"), folder / "run")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    first = outcome(prepare(config, VOCABULARY, 1, folder / "run"), folder / "run")
    for module, name in (
        (data.kept_corpus, "assemble"),
        (data.batches.windows, "encode_pairs"),
        (data.batches.windows, "fingerprint"),
        (data.tokens.tokenizer, "tokenizer_key"),
        (data.tokens.tokenizer, "train"),
    ):
        monkeypatch.setattr(module, name, refuse)
    again = outcome(prepare(config, VOCABULARY, 1, folder / "run"), folder / "run")
    assert read == first == again
    if changes == CONFIGS["held out"]:
        files = prepare(config, VOCABULARY, 1, folder / "other").report.files
        assert files.valid.file == str(folder / "other" / "held_out" / "valid.tsv")


def sources_of(config, folder):
    return list(load_corpus(config, folder / "run").training.sources)


def test_a_changed_line_is_seen_though_size_and_time_are_those_of_before(folder):
    config, path = settings(folder), folder / "a.tsv"
    before, times = sources_of(config, folder), path.stat()
    path.write_text(path.read_text().replace("house 7 ", "horse 7 ", 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    after = sources_of(config, folder)
    assert [(one, other) for one, other in zip(before, after, strict=True) if one != other] == [
        ("house 7 xxxxxxx", "horse 7 xxxxxxx")
    ]


def test_a_touched_file_is_not_read_again(folder, monkeypatch):
    config = settings(folder)
    before = sources_of(config, folder)
    os.utime(folder / "a.tsv", (1, 1))
    monkeypatch.setattr(data.kept_corpus, "assemble", refuse)
    assert sources_of(config, folder) == before


@pytest.mark.parametrize("name", ["a.tsv", "b.tsv", "valid.tsv", "test.tsv"])
def test_every_file_counts(folder, name):
    config = settings(folder)
    before = corpus_key(config)
    with open(folder / name, "a", encoding="utf-8") as file:
        file.write("new\tnuevo\n")
    assert corpus_key(config) != before


def test_the_key_has_every_setting_of_the_text_the_code_and_its_libraries(folder, monkeypatch):
    config = settings(folder)
    keys = {corpus_key(config)}
    for changes in (
        {"max_length_ratio": 2.0},
        {"drop_overlap": True},
        {"malformed": "skip"},
        {"source": "es", "target": "en"},
        {"train": ["b.tsv", "a.tsv"]},
        {"weights": [1.0, 2.0]},
        {"columns": ["es", "en"]},
    ):
        keys.add(corpus_key(replace(config, **changes)))
    monkeypatch.setattr(data.kept_corpus, "code", lambda: "another version")
    keys.add(corpus_key(config))
    assert len(keys) == 9 and None not in keys
    monkeypatch.undo()
    unused = replace(config, batch_rows=8, row_length=32, window=64, prefetch=1, subword_sampling=0.1)
    assert corpus_key(unused) == corpus_key(config)


def test_a_file_that_is_written_while_it_is_read_is_read_again_and_not_kept(folder, monkeypatch):
    config, assemble, calls = settings(folder), data.corpus.build.assemble, []

    def assemble_and_append(*arguments):
        corpus = assemble(*arguments)
        calls.append(1)
        if len(calls) == 1:
            with open(folder / "a.tsv", "a", encoding="utf-8") as file:
                file.write("new\tnuevo\n")
        return corpus

    monkeypatch.setattr(data.kept_corpus, "assemble", assemble_and_append)
    assert sources_of(config, folder)[90] == "new"
    assert sources_of(config, folder)[90] == "new"
    assert len(calls) == 3


def test_mistakes_are_told_as_without_a_cache_and_again(folder):
    (folder / "a.tsv").write_text("no tab\n")
    for _ in range(2):
        with pytest.raises(UserError, match=r"a\.tsv:1: no tab in the line"):
            load_corpus(settings(folder), folder / "run")
    with pytest.raises(UserError, match=r"no valid file at .*none\.tsv"):
        load_corpus(settings(folder, train=["b.tsv"], valid="none.tsv"), folder / "run")


def test_a_dataset_of_the_hub_has_no_key_and_a_folder_that_of_its_files(folder):
    assert corpus_key(settings(folder, train=["owner/name"])) is None
    (folder / "parts").mkdir()
    keys = []
    for name in ("one.tsv", "two.tsv"):
        (folder / "parts" / name).write_text("a\tb\n")
        keys.append(corpus_key(settings(folder, train=["parts"])))
    assert None not in keys and keys[0] != keys[1]


def test_another_vocabulary_or_row_gives_other_tokens_of_the_same_text(folder):
    first = prepare(settings(folder), VOCABULARY, 1, folder / "run")
    other = prepare(settings(folder), TokenizerConfig(vocab_size=301), 1, folder / "other")
    longer = prepare(settings(folder, row_length=32), VOCABULARY, 1, folder / "longer")
    seeds = prepare(settings(folder), VOCABULARY, 2, folder / "seeds")
    assert len({each.stream.fingerprint for each in (first, other, longer, seeds)}) == 4
    assert first.stream.encoded.sources.flat.tolist() != other.stream.encoded.sources.flat.tolist()
    entries = [path.name.partition("-")[0] for path in (folder / "cache" / "puente" / "corpora").glob("*/")]
    assert sorted(entries) == ["corpus", "tokens", "tokens", "tokens"]
