"""A source by its name: the real corpus, text as it is normalised, and paths."""

from dataclasses import replace
from pathlib import Path

import pytest

from data.corpus.build import filter_pairs
from data.corpus.report import Dropped
from data.pairs import Pairs
from data.sources.phrasebook import TABLE
from data.sources.source import Source
from tests.data.sources.reading import load

README = {  # rows and sha256 as the corpus's README states them
    "train": (111_679, "8ed0c7c945d4e645e76a45ceeedb0bedca410d7b79f10ea0a73bd9866d05fd25"),
    "valid": (2_468, "7abacf927e7ec6379d9d106150b6c3575a93355c5fd5317f6e5ea59c013bdb4a"),
    "test": (2_417, "83bcaac2710ff3489f3941bf3b5391295075bb069a57281e13ad35110194b729"),
}


@pytest.mark.parametrize("split", README)
def test_the_real_corpus_has_the_rows_of_its_readme(real_splits, split):
    pairs, report = real_splits[split]
    assert (report.rows, report.sha256) == README[split]
    assert len(pairs.sources) == len(pairs.targets) == report.rows


def test_the_real_corpus_is_read_as_python_reads_it(corpus, real_training):
    lines = (Path(corpus.root) / "train.tsv").read_bytes().decode().split("\n")[:-1]
    assert [f"{s}\t{t}" for s, t in zip(real_training.sources, real_training.targets, strict=True)] == lines


def test_any_file_can_be_the_test_set(tmp_path, monkeypatch):
    (tmp_path / "root").mkdir()
    (tmp_path / "mine[1]*.tsv").write_bytes(b"one\tuno\n")  # and its name is no glob pattern
    (tmp_path / "mine1x.tsv").write_bytes(b"two\tdos\n")
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "mine[1]*.tsv"), "mine[1]*.tsv", "../mine[1]*.tsv"):
        pairs, report = load(tmp_path / "root", path, "test")
        assert pairs.targets == ["uno"]
        assert Path(report.file).is_absolute()


def test_filters_drop_and_count_each_kind():
    #           (5+5)/(5+5)   empty       (31+5)/(5+5) = 3.6   (30+5)/(5+5) = 3.5
    sources = ["hello", "", "hello", "hello"]
    targets = ["adiós", "vacío", "x" * 31, "y" * 30]
    kept, dropped = filter_pairs(Pairs(sources, targets), 3.5)
    assert kept == Pairs(["hello", "hello"], ["adiós", "y" * 30])
    assert dropped == Dropped(empty=1, mismatched=1)


def test_the_files_of_a_source_are_known_before_it_is_read(tmp_path, corpus):
    for name in ("a.csv.gz", "n.en", "n.es", "set/train.csv", "set/more/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = {"a.csv.gz": ["a.csv.gz"], "n.LANG": ["n.en", "n.es"], "set:part": ["set/more/x", "set/train.csv"]}
    for name, names in files.items():
        assert Source.parse(replace(corpus, root=str(tmp_path)), name, "train").files == [tmp_path / n for n in names]
    assert Source.parse(corpus, "phrasebook:grammar", "train").files == [TABLE]
    assert Source.parse(corpus, "OWNER/NAME:en-es", "train").files is None
