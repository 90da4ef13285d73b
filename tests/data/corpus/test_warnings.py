"""Warnings of a source that was hardly read as it was meant, and none of corpora that were."""

import random
from pathlib import Path
from typing import Any

import pytest

from data.config import DataConfig
from data.corpus.build import load_training
from data.corpus.warnings import correlate_lengths, find_misread, find_source_warnings, find_warnings
from data.pairs import Pairs
from data.sources.phrasebook import phrasebook
from data.sources.report import SourceReport
from data.sources.source import Source
from tests.prepared import build_corpus

ENGLISH, SPANISH, _ = map(list, zip(*phrasebook()["phrases:train"], strict=True))
WORDS = sorted({word for sentence in ENGLISH for word in sentence.strip(".!?").split()})


def warnings(folder: Path, pairs: Pairs, **changes: Any) -> list[str]:
    """The warnings of a table of these pairs before training, without the folder."""
    lines = [f"{source}\t{target}\n" for source, target in zip(pairs.sources, pairs.targets, strict=True)]
    (folder / "a.tsv").write_text("".join(lines), encoding="utf-8")
    config = DataConfig(root=str(folder), train=["a.tsv"], quoting="keep", **changes)
    found = find_warnings(config, [load_training(config, Source.parse(config, "a.tsv", "train"), 1.0)])
    return [line.replace(f"{folder}/", "") for line in found]


def test_lines_that_are_not_parallel_are_reported(tmp_path):
    shifted = Pairs(ENGLISH, SPANISH[100:] + SPANISH[:100])
    (line,) = [line for line in warnings(tmp_path, shifted) if "parallel" in line]
    assert line.startswith("a.tsv: long sources have no longer targets than short ones (correlation of lengths ")
    assert line.endswith("): are its lines parallel?")
    few = Pairs(shifted.sources[:90], shifted.targets[:90])
    assert not [line for line in warnings(tmp_path, few) if "parallel" in line]


def test_many_dropped_rows_are_reported(tmp_path):
    long = [f"{sentence} {'ja ' * 90}" for sentence in SPANISH[:11]]
    mixed = Pairs(ENGLISH[:100], [*long, *SPANISH[11:100]])
    assert warnings(tmp_path, mixed) == [
        "a.tsv: 11 of 100 rows are dropped because one side is far longer than the other: are its columns what "
        "data.columns says? If they are, a higher data.max_length_ratio keeps more"
    ]
    assert warnings(tmp_path, Pairs(ENGLISH[1:101], [*long[1:], *SPANISH[11:101]])) == []


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_letters_of_another_encoding_are_reported_and_counted(tmp_path, encoding):
    sentences = ["Mañana comerá él aquí.", "¿Qué?", "¡Hola!", "Ñu", "“No”, dijo.", "Está bien."]
    spoilt = [text.encode().decode(encoding, errors="replace") for text in sentences]
    assert find_misread(Pairs(sentences, sentences)) == []
    assert find_misread(Pairs(spoilt, sentences)) == spoilt
    count = 2 * len(ENGLISH) + 4
    assert warnings(tmp_path, Pairs([*ENGLISH, "What?", "Hello!"], [*SPANISH, spoilt[1], spoilt[2]])) == [
        f"a.tsv: 2 of {count} sentences look like UTF-8 read in another encoding (Â¿QuÃ©?): fix "
        "these lines, or convert the file again"
    ]


def test_letters_of_other_languages_are_no_fault():
    sentences = ["IRMÃ”", "AMANHÃ… NÃO!", "«AMANHÃ»", "Ânimo", "â 5 €", "MAÇÃ – SÃO", "Ãé", "Â, Ã, â: letters", "ÃÂâ"]
    assert find_misread(Pairs(sentences, sentences)) == []


def test_a_first_line_that_may_be_a_header_is_reported_if_headers_are_to_be_skipped(tmp_path):
    pairs = Pairs(["Deutsch", *ENGLISH], ["Französisch", *SPANISH])
    assert warnings(tmp_path, pairs, header="skip") == [
        "a.tsv: its first line (Deutsch, Französisch) does not look like a header and is a pair, although "
        "data.header=skip; remove the line if it is a header"
    ]
    assert warnings(tmp_path, pairs) == warnings(tmp_path, pairs, header="keep") == []
    assert warnings(tmp_path, Pairs(["English", *ENGLISH], ["Spanish", *SPANISH]), header="skip") == []
    assert warnings(tmp_path, Pairs(["I see.", *ENGLISH], ["Veo.", *SPANISH]), header="skip") == []


def glossary(seed: int) -> Pairs:
    """Single words, whose lengths have nothing to do with each other."""
    others = WORDS.copy()
    random.Random(seed).shuffle(others)
    return Pairs(WORDS, others)


NUMBERS = range(900)
CLEAN = {
    "phrases": Pairs(ENGLISH, SPANISH),
    "thirty": Pairs(ENGLISH[:30], SPANISH[:30]),
    "capitals": Pairs([s.upper() for s in ENGLISH], [s.upper() for s in SPANISH]),
    "glossary": glossary(1),
    "another glossary": glossary(2),
    "numbers": Pairs([str(13 * n) for n in NUMBERS], [str(13 * n) for n in NUMBERS]),
    "codes": Pairs(
        [f"SKU-{n:05d}" if n % 4 else f"Replace part SKU-{n:05d} with X." for n in NUMBERS],
        [f"SKU-{n:05d}" if n % 4 else f"Sustituya la pieza SKU-{n:05d} por X." for n in NUMBERS],
    ),
    "one template": Pairs([f"Das Haus {n} ist alt." for n in NUMBERS], [f"C'est la maison {n}." for n in NUMBERS]),
    "Chinese": Pairs(["谢谢。", "我不知道你在说什么。"] * 50, ["Thanks.", "I do not know what you are saying."] * 50),
}
LANGUAGES = {"one template": ["de", "fr"], "Chinese": ["zh", "en"]}  # of the others: those of every config


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_said_of_clean_corpora(tmp_path, name):
    source, target = columns = LANGUAGES.get(name, ["en", "es"])
    assert warnings(tmp_path, CLEAN[name], columns=columns, source=source, target=target) == []


@pytest.mark.slow
def test_nothing_is_said_of_the_grammar_and_the_real_corpus(corpus):
    assert build_corpus(DataConfig(train=["phrasebook:grammar"], valid="", test="")).warnings == []
    assert build_corpus(corpus).warnings == []


def test_a_monster_among_single_words_is_no_evidence():
    pairs = glossary(3)
    assert correlate_lengths(Pairs([*pairs.sources, "x" * 10**6], [*pairs.targets, "y" * 10**6])) is None
    assert list(find_source_warnings(DataConfig(), Pairs([], []), SourceReport("a.jsonl", "", 0))) == []
