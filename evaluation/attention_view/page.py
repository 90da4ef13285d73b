"""Attention weights as one self-contained page for a browser: page.html with page.css and page.js inside.

Without JavaScript the page still shows the word pairs and names the picture files. All text is escaped, and the page's
policy forbids every style, script and address except that one style and that one script.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

import numpy as np
from matplotlib.colors import to_hex

from evaluation.attention_view.heatmaps import COLOURS, HeatMaps
from evaluation.attention_view.word_pairs import PairWeights

PAGE, STYLE, SCRIPT = (
    Path(__file__).with_suffix(ending).read_text(encoding="utf-8") for ending in (".html", ".css", ".js")
)
ABOUT_PAIRS = (
    "A word of the translation is a query where it is predicted, and a key where it is read. Of words in several "
    "pieces: the mean, over the query's pieces, of the sum over the key's."
)


@dataclass(frozen=True)
class SentenceView:
    """What a page shows; ``maps`` has each use of attention under a short name."""

    run: str
    sentence: str
    translation: str
    maps: dict[str, HeatMaps]
    pairs: list[PairWeights]


def render_page(view: SentenceView, pictures: list[str]) -> str:
    """The page as HTML; ``pictures`` are the names of the files that show the same without JavaScript."""
    return Template(PAGE).substitute(
        policy=content_policy(),
        style=STYLE,
        run=escape(view.run),
        sentence=escape(view.sentence),
        translation=escape(view.translation),
        pictures=escape(", ".join(pictures)),
        sections=pairs_section(view.pairs) + "".join(use_section(name, maps) for name, maps in view.maps.items()),
        weights=embed(view.maps),
        script=SCRIPT,
    )


def content_policy() -> str:
    """Forbids everything except the one style and the one script, identified by their SHA-256."""
    style, script = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in (STYLE, SCRIPT))
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def use_section(name: str, maps: HeatMaps) -> str:
    """The heading of one use of attention, and the element in which the script draws it."""
    axes = f"Rows are queries: {escape(maps.queries_are)}; columns are keys: {escape(maps.keys_are)}."
    return section(maps.title, axes, f'<div class="use" id="{escape(name)}"></div>')


def pairs_section(pairs: list[PairWeights]) -> str:
    """A table for each pair; an empty string without pairs."""
    tables = "".join(f'<div class="scroll">{table(pair)}</div>\n' for pair in pairs)
    return section("Word pairs", ABOUT_PAIRS, f'<div class="use">\n{tables}</div>') if pairs else ""


def section(title: str, about: str, content: str) -> str:
    return f'<section>\n<h2>{escape(title)}</h2>\n<p class="quiet">{about}</p>\n{content}\n</section>\n'


def table(pair: PairWeights) -> str:
    """A row for each layer, a column for each head, and the mean over heads."""
    head = "".join(f'<th scope="col">{name}</th>' for name in pair.columns)
    rows = ""
    for name, weights in pair.rows.items():
        cells = "".join(f"<td>{weight:.3f}</td>" for weight in weights)
        rows += f'<tr><th scope="row">{name}</th>{cells}</tr>'
    return f'<table class="pair"><caption>{escape(pair.title)}</caption><tr><td></td>{head}</tr>{rows}</table>'


def embed(maps: dict[str, HeatMaps]) -> str:
    """The script's input as JSON that cannot end the script element; weights have four decimals, or are null."""
    uses = []
    for name, use in maps.items():
        weights = np.round(use.weights.astype(np.float64), 4).astype(object)
        weights[np.isnan(use.weights)] = None
        labels = {"queries": use.queries, "keys": use.keys, "queries_are": use.queries_are, "keys_are": use.keys_are}
        uses.append({"id": name, **labels, "weights": weights.tolist()})
    colours = [to_hex(colour) for colour in COLOURS(np.linspace(0, 1, 256))]
    text = json.dumps({"colours": colours, "uses": uses}, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # the rest is ASCII
