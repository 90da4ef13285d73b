"""Documents: each character is text or kept, marks go around aligned words, and the structure stays."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evaluation.documents.parts import Part
from evaluation.documents.translate import FORMATS, translate_document
from evaluation.documents.units import Unit, find_units, place_marks
from evaluation.forced_scores import Aligned
from evaluation.translate import Translator

PAGES = {form: (Path(__file__).parent / f"page.{form}").read_text("utf-8") for form in FORMATS}
FRAGMENTS = [
    *(
        "The cat. ",
        "&eacute;",
        "&nbsp;",
        "&",
        "<b>",
        "</b>",
        "<p>",
        "</p>",
        "<code>",
        "</code>",
        "<br/>",
        "<!-- x. -->",
    ),
    *("<![", "<!--", "[^1]", "[x] ", "\r", '<i translate="no">', "<div>\n"),
    *("**", "*", "`", "[", "](a_b)", "![", "\n", "\n\n", "> ", "- ", "1. ", "# ", "| a |", "|--|", "    ", "  \n", "<"),
    *("```", "\\*", "https://a.org/b?c.", "<https://a.org>", "<script>", "~~", "---\n", "\r\n"),
]


@pytest.mark.parametrize("form", FORMATS)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join))
@example(document="**&eacute;**")
def test_the_parts_are_the_document(form, document):
    assert "".join(part.raw for part in FORMATS[form].parts(document)) == document
    pieces = list(find_units(FORMATS[form].parts(document)))
    assert "".join(piece if isinstance(piece, str) else piece.raw for piece in pieces) == document


TEXTS = {
    "html": [
        *("Our house", "The white cat", "The white cat is sleeping on the table. I like it.", "The boy reads"),
        *("a book", "now. Run", "first.", "Where is the dog?", "The water is cold", "Café", "tea", "here"),
    ],
    "markdown": [
        *("The white cat", "The white cat is sleeping. The boy is reading a red book.", "My sister has a red car."),
        *("The water is cold.", "Buy the shoes. They are red.", "here", "Word", "The red dog", "The white house"),
        *("See", "or"),
    ],
    "text": [
        *("OUR HOUSE", "The white cat is sleeping on the table. The boy is reading a book in the kitchen."),
        *("Milk", "Bread and cheese", "See", "for more.", "An indented line."),
    ],
}


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_text(form):
    units = [piece for piece in find_units(FORMATS[form].parts(PAGES[form])) if isinstance(piece, Unit)]
    assert [" ".join(unit.text.split()) for unit in units] == TEXTS[form]


class Tags(HTMLParser):
    """Everything but text, in any order: words that change places take their tags along."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.found = Counter[str]()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found[self.get_starttag_text() or ""] += 1

    def handle_endtag(self, tag):
        self.found[f"/{tag}"] += 1

    def handle_comment(self, data):
        self.found[data] += 1

    def handle_entityref(self, name):
        self.found[name] += name != "eacute"


def marks_of(tokens: list[Token]) -> Counter[str]:
    """The links, codes and emphasis of a block of Markdown."""
    return Counter(f"{each.type} {each.attrs}" for each in tokens if not re.search("text|break", each.type))


def structure(document: str, form: str) -> object:
    match form:
        case "html":
            return Tags(document).found, document.split("<style>")[1].split("<body")[0], document.count(">1,250<")
        case "markdown":
            blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(document)
            code = [each.content for each in blocks if each.type in ("fence", "code_block")]
            return [each.type for each in blocks], [marks_of(each.children or []) for each in blocks], code
        case _:
            return re.findall(r"\n\s*\n|^ +|^- |https\S+", document, re.MULTILINE)


@pytest.mark.parametrize("form", FORMATS)
def test_everything_but_text_is_where_it_was(translator, params, form):
    translated, texts = translate_document(translator, params, PAGES[form], form)
    assert translated != PAGES[form]
    assert structure(translated, form) == structure(PAGES[form], form)
    assert len(texts) >= len(TEXTS[form]) and all(translation for _, translation in texts)


class Same(Translator):
    """Translates every text as itself."""

    def translate(self, params, lines, *, prefix="", on_progress=None):
        return [SimpleNamespace(text=" ".join(line.split())) for line in lines]


@pytest.mark.parametrize(
    ("form", "document", "texts"),
    [
        ("markdown", "\ufeff---\r\na: cat\r\n---\r\n\r\n# The dog\r\n\r\nA cat.\r\n", ["The dog", "A cat."]),
        ("markdown", "The cat\r\rThe dog\n\nThe bird", ["The cat", "The dog", "The bird"]),
        ("markdown", "- [x] A cat\n\n> [!TIP]\n>\n> Go.[^1]\n\n[^1]: The end.", ["A cat", "Go.", "The end."]),
        ("markdown", '<kbd>Enter</kbd> now <i translate="no">A <b>cat</b></i> here', ["now", "here"]),
        ("markdown", "> <div>\n> A cat\n> </div>\n\n<p>a_cat</p>\n", ["a_cat"]),
        ("html", "<script><!--x--></script><p>A <![ b.</p><i translate=NO>Cat</i><p>Dog</p><!-- bird", ["A", "Dog"]),
        ("text", f"\ufeff- A cat\r\n\r\nA{' cat' * 12}\r\ncat cat\r\nTom。", ["A cat", f"A{' cat' * 14}", "Tom。"]),
    ],
)
def test_a_document_whose_texts_are_their_own_translations_stays_as_it_is(translator, params, form, document, texts):
    same = Same(translator.models, translator.tokenizer, translator.decoding, translator.usual)
    found, translated = translate_document(same, params, document, form)
    assert (found, [" ".join(text.split()) for text, _ in translated]) == (document, texts)


def unit(text: str) -> Unit:
    """Of text with marks in square brackets."""
    parts = [part for part in re.split(r"([\[\]])", text) if part]
    kinds = {"[": "open", "]": "close"}
    return Unit([Part(kinds[p], p) if p in kinds else Part("text", p, p) for p in parts])  # type: ignore[arg-type]


WORDS = "The white cat sleeps here".split()
ORDER = [(0, 0), (2, 1), (1, 2), (3, 3), (4, 4)]  # El gato blanco duerme aquí


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("The [white] cat sleeps here.", "El gato [blanco] duerme aquí."),
        ("The [white cat] sleeps here.", "El [gato blanco] duerme aquí."),
        ("[The [white] cat] sleeps [here].", "[El gato [blanco]] duerme [aquí]."),
        ("[[The white cat sleeps here.]]", "[[El gato blanco duerme aquí.]]"),
        ("[The white] cat [sleeps] here.", "[El] gato blanco [duerme] aquí."),  # of two runs of a word, the first
        ("The white cat sleeps here[.]", None),
        ("The [white] [cat sleeps] here.", "El [gato] [blanco] duerme aquí."),
    ],
)
def test_marks_go_around_aligned_words(source, expected):
    translation, order = "El gato blanco duerme aquí.", ORDER
    placed = place_marks(unit(source), translation, Aligned(WORDS, translation[:-1].split(), order))
    for place, mark in reversed(placed or []):
        translation = translation[:place] + mark + translation[place:]
    assert (None if placed is None else translation) == expected


def test_a_word_without_alignment_has_the_place_of_its_source():
    aligned = Aligned(list("abcd"), list("wxyz"), [(0, 0), (0, 1), (0, 2), (3, 3)])
    assert place_marks(unit("a b [c] d"), "w x y z", aligned) == [(4, "["), (5, "]")]
    assert place_marks(unit("[a] [b]"), "w", Aligned(["a", "b"], ["w"], [(0, 0)])) is None  # both around one word
