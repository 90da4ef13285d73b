"""The page holds the weights, and nothing that is written into it can be anything but text."""

import base64
import hashlib
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from evaluation.attention_view.heatmaps import HeatMaps
from evaluation.attention_view.sentence import SCRIPT, STYLE, render_page

HOSTILE = '<script>alert(1)</script> & "x" </script>\u2028\u2029<!-- \' ]]> {SCRIPT} <img src=x onerror=alert(2)>'
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2, 3)).astype(np.float32)
PAST = np.where(np.tri(3, dtype=bool), WEIGHTS, np.nan).astype(np.float32)
MAPS = {
    "encoder-decoder": HeatMaps("Across", HOSTILE, WEIGHTS, ["a", HOSTILE, "</s>"], [HOSTILE, "␣b", "c"], HOSTILE, "k"),
    "decoder": HeatMaps(HOSTILE, HOSTILE, PAST, [HOSTILE, "y", "z"], ["<s>", "y", HOSTILE], "rows", "columns"),
}
VOID = {"meta", "br"}


class Parsed(HTMLParser):
    """The elements of a page in order, with their attributes and all text below them; every one must be closed."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict, list[str]]] = []
        self.open: list[tuple[str, dict, list[str]]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element: tuple[str, dict, list[str]] = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def texts(self, wanted):
        return ["".join(text) for tag, _, text in self.elements if tag == wanted]


@pytest.fixture(scope="module")
def parsed():
    return Parsed(render_page(HOSTILE, HOSTILE, HOSTILE, MAPS, [f"{HOSTILE}.png", "b.png"]))


def test_hostile_text_stays_text(parsed):
    assert parsed.texts("title") == [f"Attention: {HOSTILE}"]
    assert parsed.texts("h1") == [HOSTILE]
    assert parsed.texts("h2") == ["Across", HOSTILE]
    assert f"{HOSTILE}.png, b.png" in parsed.texts("noscript")[0]
    assert not {tag for tag, _, _ in parsed.elements} & {"img", "link", "iframe", "base", "form", "a"}
    names = {name for _, attributes, _ in parsed.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "href", "style", "action")]
    assert [a["id"] for _, a, _ in parsed.elements if "id" in a] == ["encoder-decoder", "decoder", "weights"]


def test_there_are_two_scripts_and_the_policy_allows_one_of_them(parsed):
    scripts = [(attributes, "".join(text)) for tag, attributes, text in parsed.elements if tag == "script"]
    assert [attributes for attributes, _ in scripts] == [{"type": "application/json", "id": "weights"}, {}]
    assert scripts[1][1] == SCRIPT and parsed.texts("style") == [STYLE]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (STYLE, SCRIPT)]
    (policy,) = [attributes["content"] for _, attributes, _ in parsed.elements if "http-equiv" in attributes]
    allowed = [f"{kind}-src 'sha256-{digest}'" for kind, digest in zip(("style", "script"), hashes, strict=True)]
    assert policy.split("; ") == ["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"]
    for code in (SCRIPT, STYLE):
        assert not [word for word in ("//www", "http", "url(", "@import", "innerHTML", "</") if word in code]


def test_the_json_in_the_page_is_the_weights_in_four_decimals(parsed):
    text = parsed.texts("script")[0]
    assert not set(text) & set("<>&\u2028\u2029")
    held = json.loads(text)
    assert len(held["colours"]) == 256 and held["colours"][0] == "#fcfdbf" and held["colours"][-1] == "#000004"
    across, past = held["uses"]
    assert across["queries"] == ["a", HOSTILE, "</s>"] and across["keys"] == [HOSTILE, "␣b", "c"]
    shown = np.array(across["weights"])
    np.testing.assert_allclose(shown, WEIGHTS, atol=0.5e-4 + 1e-9, rtol=0)
    np.testing.assert_array_equal(shown, np.round(shown, 4))
    nulls = np.array([[value is None for value in row] for row in past["weights"][1][0]])
    np.testing.assert_array_equal(nulls, np.triu(np.ones((3, 3), bool), k=1))
