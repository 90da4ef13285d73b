"""Where long texts are cut, by hand, and that whatever the text nothing is lost and every piece fits."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.long_lines import Usual, count_usual_sentences, cut, split_line, split_sentences
from data.pairs import normalise

MILLION = 200_000


def words(texts: list[str]) -> list[int]:
    """A token for each word and EOS."""
    return [len(text.split()) + 1 for text in texts]


def characters(texts: list[str]) -> list[int]:
    return [len(text) + 1 for text in texts]


def utf8(texts: list[str]) -> list[int]:
    """Bytes, a space in front and EOS, as a vocabulary spells what it has never seen."""
    return [len(text.encode()) + 2 for text in texts]


PROSE = ["Tom runs. ", "¿Quién es? ", "Dr. No, ", "well; ", "¡Ay!» ", "uno dos ", "3.14 ", "… ", "— ", "(é) ", "x" * 30]
prose = st.lists(st.sampled_from(PROSE), max_size=25).map("".join)
texts = st.one_of(prose, st.text(max_size=60), st.text("ab .,¡", max_size=80)).map(normalise)
limits = st.integers(min_value=1, max_value=30)


def check(text: str, longest: int, count) -> list[str]:
    """Everything that must be true of pieces."""
    pieces = cut(text, longest, count)
    assert all(pieces) or pieces == [text]
    assert all(size <= longest or len(piece) == 1 for piece, size in zip(pieces, count(pieces), strict=True))
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert [normalise(piece) for piece in pieces] == pieces
    if all(size <= longest for size in count(text.split() or [""])):
        assert " ".join(pieces) == text
    return pieces


RAIN = "He came. When it rained, as it often did; nobody we knew ever went out: we stayed — all of us — at home. Yes."
BY_HAND = [  # the count, the longest piece, and the pieces of the text that they join to
    (words, 4, ["One. Two. Three."]),
    (words, 1, [""]),
    (words, 6, ["It rains. We stay here.", "Why not? I like it!", "So do you… The end"]),
    (words, 5, ["It rains.", "We stay here.", "Why not?", "I like it!", "So do you…", "The end"]),
    # Spanish marks stay with their sentences.
    (words, 5, ["¡Hola! ¿Cómo estás tú?", "Dijo: «No lo sé.»", "(¿Y tú?) Nada más."]),
    (words, 3, ["«¿Qué?» dijo.", "¡Sí! «Bien.»", "Ya."]),
    # A sentence that is too long is cut at clauses, and then at spaces.
    (words, 8, ["He came.", *RAIN[9:].replace("; ", ";|").replace(": ", ":|").replace("— at", "—|at").split("|")]),
    (words, 4, ["One.", "a b c", "d e f", "g, h. Two."]),
    # A small letter after a full stop makes it the end of a clause.
    (words, 6, ["so it is.", "you see it. yes,", "I do"]),
    (words, 5, ["Go. see the vol.", "you know of"]),
]


def test_pieces_by_hand():
    for count, longest, pieces in BY_HAND:
        assert cut(" ".join(pieces), longest, count) == pieces


@pytest.mark.parametrize(
    "text",
    [
        "We met Mr. Brown and Mrs. Brown there.",
        "Vino el Sr. López con la Sra. López ayer.",
        "¿Dónde está Ud. Señor Ruiz, la Dra. Ruiz y p. ej. Ana?",
        "Vive en EE. UU. Desde niño está allí.",
        "Unas frutas (p. ej. Kiwis) son verdes hoy.",
        "The U.S. Army of J. R. R. Tolkien",
        "Pi is 3.14 and e.g. Rome is v1.2 here",
        "He left... and then etc. and so on",
    ],
)
def test_a_full_stop_that_ends_no_sentence(text):
    """The first piece has room for all words but the last, and yet ends with the sentence before."""
    assert cut(f"One. {text}", len(text.split()) + 1, words) == ["One.", text]


def test_a_word_that_is_too_long_is_cut_anywhere():
    assert cut("Yes. abcdefgh no", 5, characters) == ["Yes.", "ab", "cde", "fgh", "no"]
    assert cut("abcdefghij", 6, characters) == ["abc", "def", "ghij"]
    assert cut("a🦊b", 3, utf8) == ["a", "🦊", "b"]  # a character is a piece, however many tokens it has
    assert cut("añ", 1, utf8) == ["a", "ñ"]


@pytest.mark.parametrize("count", [words, characters, utf8])
@settings(max_examples=50)
@given(text=texts, longest=limits)
def test_every_piece_fits_and_nothing_is_lost(count, text, longest):
    check(text, longest, count)


@pytest.mark.parametrize("count", [words, characters])
@given(
    parts=st.lists(st.text("ab", min_size=1, max_size=9), min_size=1), stop=st.sampled_from(["", "!"]), longest=limits
)
def test_no_piece_has_room_for_the_first_part_of_the_next(count, parts, stop, longest):
    """Whether the parts are words or sentences of a word; room even for the longest, so that no word is cut."""
    parts = [part.upper() + stop for part in parts]
    longest = max(longest, *count(parts))
    for before, after in pairwise(check(" ".join(parts), longest, count)):
        assert count([f"{before} {after.split()[0]}"])[0] > longest


@pytest.mark.parametrize(
    "text",
    ["sentences " * (MILLION // 10), "x" * MILLION, "Well, " + "x" * (MILLION // 8) + "-. " + "yes " * (MILLION // 32)],
    ids=["words", "one word", "mixed"],
)
def test_the_characters_of_a_very_long_text_are_counted_a_few_times_only(text):
    """However long the text is: each of its characters a few times."""
    counted: list[int] = []

    def count(texts: list[str]) -> list[int]:
        counted.extend(map(len, texts))
        return characters(texts)

    text = text.strip()
    pieces = cut(text, 500, count)
    assert max(map(len, pieces)) < 500
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert len(pieces) < 2.1 * len(text) / 500
    assert sum(counted) < 20 * len(text)


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Mr. Smith paid 3.5 euros.", "He lives in the U.S. now.", "Why?"]),
        ("en", ["We met Dr. Brown at 5 p.m. yesterday.", '"I hope so."', "He left..."]),
        ("en", ["1. Go home.", "2. Sleep.", "See fig. 3 on p. 5. 10."]),
        ("es", ["El Sr. López pagó 3,5 euros.", "¿Vive en EE. UU. ahora?", "¡Sí!"]),
        ("es", ["Mr. Brown vino.", "Dijo: «No lo sé.»", "Vale…"]),
        ("of nowhere", ["Mr. Smith slept.", "I did not."]),
    ],
)
def test_sentences_by_hand(language, sentences):
    assert split_sentences(" ".join(sentences), language) == sentences


@pytest.mark.parametrize("text", ["", "...", "1990.", "a", "Hello"])
def test_what_has_one_sentence_or_none(text):
    assert split_sentences(text, "en") == [text]


@given(texts, st.sampled_from(["en", "es", "ja", ""]))
def test_sentences_are_the_text(text, language):
    sentences = split_sentences(text, language)
    assert "".join(sentences).replace(" ", "") == text.replace(" ", "")
    assert len(sentences) == 1 or all(any(map(str.isalpha, each)) for each in sentences)


def test_a_line_is_split_unless_training_had_such_lines():
    line, long = "One two. Three four.", "One two three, four five six."
    assert split_line(line, "en", Usual(1, 10), words) == ["One two.", "Three four."]
    assert split_line(line, "en", Usual(2, 5), words) == [line]
    assert split_line(line, "en", Usual(2, 4), words) == ["One two.", "Three four."]
    assert split_line(long, "en", Usual(1, 7), words) == [long]
    assert split_line(f"{long} Yes.", "en", Usual(2, 6), words) == ["One two three,", "four five six.", "Yes."]


def test_what_one_line_in_fifty_has_is_usual():
    lines = ["One."] * 145 + ["One. Two."] * 3 + ["One. Two. Three."] * 2
    assert count_usual_sentences(lines, ["en"] * 150) == 2
    assert count_usual_sentences(["One.", *lines], ["en"] * 151) == 1
    assert count_usual_sentences([*lines, lines[-1], lines[-1]], ["en"] * 152) == 3
    assert count_usual_sentences([], []) == 1


def test_held_out_lines_of_tatoeba_are_like_those_of_training(corpus_root):
    """So each that is one sentence is translated whole, as before, in both directions; some have two."""
    splits = [(corpus_root / f"{split}.tsv").read_text("utf-8").splitlines() for split in ("train", "valid", "test")]
    for column, language in enumerate(("en", "es")):
        train, *held_out = ([line.split("\t")[column] for line in lines] for lines in splits)
        usual = Usual(count_usual_sentences(train, [language] * len(train)), max(words(train)))
        assert usual.sentences == 1
        for lines in held_out:
            split = {line: split_line(line, language, usual, words) for line in lines}
            assert 10 < sum(len(pieces) == 2 for pieces in split.values()) < 30
            assert all(pieces == [line] for line, pieces in split.items() if len(split_sentences(line, language)) == 1)
