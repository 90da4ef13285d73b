import hashlib
from pathlib import Path

import pytest

from common.errors import UserError
from data.config import DataConfig
from data.corpus.filters import filter_pairs
from data.corpus.report import Dropped
from data.pairs import Pairs, normalise
from data.sources.source import load_source

README = {  # rows and sha256 as the corpus's README states them
    "train": (111_679, "8ed0c7c945d4e645e76a45ceeedb0bedca410d7b79f10ea0a73bd9866d05fd25"),
    "valid": (2_468, "7abacf927e7ec6379d9d106150b6c3575a93355c5fd5317f6e5ea59c013bdb4a"),
    "test": (2_417, "83bcaac2710ff3489f3941bf3b5391295075bb069a57281e13ad35110194b729"),
}


def load(folder: Path, content: bytes, **changes):
    (folder / "train.tsv").write_bytes(content)
    return load_source(DataConfig(root=str(folder), **changes), "train.tsv", "train")


@pytest.mark.parametrize("split", README)
def test_the_real_corpus_has_the_rows_of_its_readme(corpus, split):
    pairs, report = load_source(corpus, f"{split}.tsv", split)
    assert (report.rows, report.sha256) == README[split]
    assert len(pairs.sources) == len(pairs.targets) == report.rows


def test_the_real_corpus_is_read_as_python_reads_it(corpus, real_training):
    lines = (Path(corpus.root) / "train.tsv").read_bytes().decode().split("\n")[:-1]
    assert [f"{s}\t{t}" for s, t in zip(real_training.sources, real_training.targets, strict=True)] == lines


def test_nothing_is_quoted_missing_a_number_or_a_header(tmp_path):
    rows = ['"Hello\tHola', "NA\tnull", "007\t1.50", 'bye"\tadiós"', "\tvacío", "# no\t-"]
    pairs, report = load(tmp_path, "\n".join(rows).encode())
    assert [f"{s}\t{t}" for s, t in zip(pairs.sources, pairs.targets, strict=True)] == rows
    assert report.sha256 == hashlib.sha256("\n".join(rows).encode()).hexdigest()


def test_direction_swaps_the_sides(tmp_path):
    pairs, _ = load(tmp_path, b"one\tuno\n", source="es", target="en")
    assert pairs == Pairs(["uno"], ["one"])


def test_text_is_nfc_with_single_spaces(tmp_path):
    decomposed = "  n\u0303ame\u00a0\u2003 e\u0301l \tx\u2028y\n"
    pairs, _ = load(tmp_path, decomposed.encode())
    assert pairs == Pairs(["ñame él"], ["x y"])
    assert normalise(normalise(decomposed)) == normalise(decomposed)


def test_crlf_and_a_missing_last_newline_are_fine(tmp_path):
    assert load(tmp_path, b"one\tuno\r\ntwo\tdos\r\n")[0] == Pairs(["one", "two"], ["uno", "dos"])
    assert load(tmp_path, b"one\tuno\ntwo\tdos")[0] == Pairs(["one", "two"], ["uno", "dos"])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"caf\xe9\tcaf\xe9", "invalid UTF-8 at byte 4"),
        (b"no tab", "no tab in the line"),
        (b"a\tb\tc", "2 tabs in the line; it needs exactly one"),
        (b"a\0\tb", "NUL"),
        (b"a\rb\tc", "carriage return"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, problem):
    with pytest.raises(UserError, match=problem) as caught:
        load(tmp_path, b"good\tbueno\nfine\tbien\n" + line + b"\nlast\tultimo\n")
    assert f"{tmp_path / 'train.tsv'}:3: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_text(tmp_path):
    assert load(tmp_path, "\ufeffone\tuno\n".encode())[0] == Pairs(["one"], ["uno"])


def test_an_empty_and_a_missing_file_are_named(tmp_path):
    with pytest.raises(UserError, match="is empty"):
        load(tmp_path, b"")
    with pytest.raises(UserError, match=r"data\.root=") as caught:
        load_source(DataConfig(root=str(tmp_path)), "valid.tsv", "valid")
    assert str(tmp_path / "valid.tsv") in str(caught.value)


def test_any_file_can_be_the_test_set(tmp_path, monkeypatch):
    (tmp_path / "root").mkdir()
    (tmp_path / "mine[1]*.tsv").write_bytes(b"one\tuno\n")  # and its name is no glob pattern
    (tmp_path / "mine1x.tsv").write_bytes(b"two\tdos\n")
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "mine[1]*.tsv"), "mine[1]*.tsv", "../mine[1]*.tsv"):
        pairs, report = load_source(DataConfig(root=str(tmp_path / "root")), path, "test")
        assert pairs.targets == ["uno"]
        assert Path(report.file).is_absolute()


def test_filters_drop_and_count_each_kind():
    #           (5+5)/(5+5)   empty       (31+5)/(5+5) = 3.6   (30+5)/(5+5) = 3.5
    sources = ["hello", "", "hello", "hello"]
    targets = ["adiós", "vacío", "x" * 31, "y" * 30]
    kept, dropped = filter_pairs(Pairs(sources, targets), 3.5)
    assert kept == Pairs(["hello", "hello"], ["adiós", "y" * 30])
    assert dropped == Dropped(empty=1, mismatched=1)


def test_the_default_ratio_drops_no_pair_of_the_real_corpus(corpus, real_training):
    """Its most uneven pair, "She studies 24 / 7." with 68 characters of Spanish, is a good translation."""
    kept, dropped = filter_pairs(real_training, corpus.max_length_ratio)
    assert len(kept) == 111_679
    assert dropped == Dropped()
