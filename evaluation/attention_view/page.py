"""Attention weights as one page for a browser, which needs nothing beside it: attention_page.css and .js are inside.

Without JavaScript it still has the word pairs and says where the pictures are. Whatever text comes in is escaped, and
the page's policy allows it no style, no script and no address but the two that were put in here.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.colors import to_hex

from evaluation.attention_view.heatmaps import COLOURS, HeatMaps
from evaluation.attention_view.word_pairs import PairWeights

STYLE, SCRIPT = (Path(__file__).with_suffix(ending).read_text(encoding="utf-8") for ending in (".css", ".js"))
NOTE = "Weights show where a head read from, not why a word was chosen."
HOW = (
    "Choose one of the small maps by a click or with the arrow keys; point at a cell of the large one, or walk over "
    "its cells with the arrow keys, to read its weight. Grey is what a query cannot see yet."
)
HOW_PAIRS = (
    "A word of the translation is a query where it is predicted, and a key where it is read. Of words in several "
    "pieces: the mean, over the query's pieces, of the sum over the key's."
)


@dataclass(frozen=True)
class Inside:
    """What a page shows; ``maps`` has each use of attention under a short name."""

    run: str
    sentence: str
    translation: str
    maps: dict[str, HeatMaps]
    pairs: list[PairWeights]


def page(inside: Inside, pictures: list[str]) -> str:
    """The page as HTML; ``pictures`` are the names of the files that show the same without JavaScript."""
    names = escape(", ".join(pictures))
    sections = "".join(section(name, maps) for name, maps in inside.maps.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention: {escape(inside.sentence)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<p class="quiet">Attention in {escape(inside.run)}</p>
<h1>{escape(inside.sentence)}</h1>
<p class="translation">{escape(inside.translation)}</p>
<p class="quiet">{NOTE}</p>
<noscript><p>The maps are drawn by JavaScript. Without it, see the pictures beside this page: {names}</p></noscript>
<p class="quiet">{HOW}</p>
</header>
<main>
{word_pairs(inside.pairs)}{sections}</main>
<script type="application/json" id="weights">{embedded(inside.maps)}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def policy() -> str:
    """Forbids everything but the one style and the one script, which are known by their SHA-256."""
    style, script = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in (STYLE, SCRIPT))
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def section(name: str, maps: HeatMaps) -> str:
    """The heading of one use of attention, and the place where the script draws it."""
    axes = f"Rows are queries: {escape(maps.queries_are)}; columns are keys: {escape(maps.keys_are)}."
    return f"""<section>
<h2>{escape(maps.title)}</h2>
<p class="quiet">{axes}</p>
<div class="use" id="{escape(name)}"></div>
</section>
"""


def word_pairs(pairs: list[PairWeights]) -> str:
    """Nothing, or a section with a table for each pair."""
    if not pairs:
        return ""
    tables = "".join(f'<div class="scroll">{table(pair)}</div>\n' for pair in pairs)
    return f"""<section>
<h2>Word pairs</h2>
<p class="quiet">{HOW_PAIRS}</p>
<div class="use">
{tables}</div>
</section>
"""


def table(pair: PairWeights) -> str:
    """A row for each layer, a column for each head, and the mean over heads."""
    names = [*(f"head {head + 1}" for head in range(pair.weights.shape[1])), "mean"]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = ""
    for layer, weights in enumerate(pair.weights, start=1):
        cells = "".join(f"<td>{weight:.3f}</td>" for weight in [*weights, weights.mean()])
        rows += f'<tr><th scope="row">layer {layer}</th>{cells}</tr>'
    caption = f"{escape(pair.query)} → {escape(pair.key)} ({escape(pair.use)})"
    return f'<table class="pair"><caption>{caption}</caption><tr><td></td>{head}</tr>{rows}</table>'


def embedded(maps: dict[str, HeatMaps]) -> str:
    """What the script draws, as JSON that can stand inside of a script element: nothing in it ends that element."""
    colours = [to_hex(colour) for colour in COLOURS(np.linspace(0, 1, 256))]
    uses = [drawn(name, use) for name, use in maps.items()]
    text = json.dumps({"colours": colours, "uses": uses}, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # the rest is ASCII


def drawn(name: str, maps: HeatMaps) -> dict[str, object]:
    """One use of attention; the weights have four decimals, and null where there is none."""
    weights = np.round(maps.weights.astype(np.float64), 4).astype(object)
    weights[np.isnan(maps.weights)] = None
    return {
        "id": name,
        "queries": maps.queries,
        "keys": maps.keys,
        "queries_are": maps.queries_are,
        "keys_are": maps.keys_are,
        "weights": weights.tolist(),
    }
