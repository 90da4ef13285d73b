"""The attention weights of one sentence and its translation, and the files that show them: pictures, archive and page.

The page, page.html with page.css and page.js inside, is for a browser; without JavaScript it names the pictures. All
text is escaped, and the page's policy forbids every other style, script and address.
"""

import base64
import hashlib
import io
import json
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx

from common.errors import UserError
from common.pictures import to_hex
from common.special_tokens import BOS, EOS
from data.pairs import normalise
from evaluation.attention_view.heatmaps import COLOURS, HeatMaps, render
from evaluation.translate import Translator, read
from model.decoding.forced import AttentionWeights, compute_attention_weights
from model.transformer import Params

MOST_TOKENS = 60  # that are still legible along an axis
CUT = "…"  # replaces EOS where the length limit ended a translation
FILES = (Path(__file__).with_name(f"page.{ending}") for ending in ("html", "css", "js"))
PAGE, STYLE, SCRIPT = (file.read_text(encoding="utf-8") for file in FILES)


class Labels(NamedTuple):
    """The tokens of rows and columns. ``target_labels[t]`` is predicted after reading ``target_inputs[: t + 1]``."""

    source_tokens: list[str]
    target_inputs: list[str]
    target_labels: list[str]


@dataclass(frozen=True)
class AttendedSentence:
    """A sentence, the translation that a search found, and the attention weights of both."""

    sentence: str
    translation: str
    weights: AttentionWeights
    labels: Labels

    def _repr_png_(self) -> bytes:
        """What a notebook shows: encoder-decoder attention."""
        return render(heat_maps(self)["encoder-decoder"], "png")


def translate_and_attend(translator: Translator, params: Params, sentence: str) -> AttendedSentence:
    """Translate a sentence and compute the attention weights with that translation.

    UserError for a sentence that is empty or no text, and for one that is too long to draw, or whose translation is.
    """
    source, pieces = encode_sentence(translator, sentence), translator.tokenizer.pieces
    found = translator.search([params], [source], 1)[0][0]
    check_length("the translation", found.tokens)
    # Where learned positions set the length limit, there is no row after the last token.
    rows = int(min(len(found.tokens) + 1, translator.positions))
    inputs = [BOS, *found.tokens][:rows]
    model = nnx.merge(translator.graphdefs[0], params)
    weights = compute_attention_weights(model, jnp.array([*source, EOS]), jnp.array(inputs))
    predicted = [*pieces(found.tokens), *(pieces([EOS]) if found.ended else [CUT])][:rows]
    labels = Labels(pieces([*source, EOS]), pieces(inputs), predicted)
    translation = translator.spell([found.tokens])[0]
    return AttendedSentence(normalise(sentence), translation, weights, labels)


def encode_sentence(translator: Translator, sentence: str) -> list[int]:
    text = read(sentence)
    if not text:
        raise UserError("the sentence is empty: give the one to translate in quotes, after the run")
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # Python's form of arguments that are not UTF-8
        raise UserError("the sentence is not UTF-8: set the terminal to UTF-8 and type it again")
    source = translator.encode_sources([text])[0]
    check_length("the sentence", source)
    if len(source) + 1 > translator.positions:
        end = f"this model's learned positions end at {translator.positions} (model.max_positions)"
        raise UserError(f"the sentence has {len(source) + 1} tokens, but {end}")
    return source


def check_length(what: str, tokens: list[int]) -> None:
    if len(tokens) > MOST_TOKENS:
        raise UserError(f"{what} has {len(tokens)} tokens, too long to draw: choose one of at most {MOST_TOKENS}")


def heat_maps(attended: AttendedSentence) -> dict[str, HeatMaps]:
    """What to draw, by the end of the file's name."""
    encoder, decoder, encoder_decoder = map(np.asarray, attended.weights)
    past = np.where(np.tri(decoder.shape[-1], dtype=bool), decoder, np.nan)
    sources, inputs, predicted = attended.labels
    predicting = f"predicting ({CUT}: cut at the length limit)" if predicted[-1] == CUT else "predicting"
    cross = encoder_decoder, predicted, sources, predicting, "source token"
    source = encoder, sources, sources, "source token as query", "source token as key"
    target = past, predicted, inputs, predicting, "token read (grey: not yet)"
    subtitle = f"{attended.sentence} → {attended.translation}"
    return {
        "encoder-decoder": HeatMaps("Encoder-decoder attention", subtitle, *cross),
        "encoder": HeatMaps("Encoder self-attention", subtitle, *source),
        "decoder": HeatMaps("Decoder self-attention", subtitle, *target),
    }


def render_files(attended: AttendedSentence, run: str, as_svg: bool) -> dict[str, bytes]:
    """The pictures, the page and the archive of weights by the names of their files."""
    name, maps, ending = slug(attended.sentence), heat_maps(attended), "svg" if as_svg else "png"
    pictures = {f"{name}.{use}.{ending}": render(use_maps, ending) for use, use_maps in maps.items()}
    page = render_page(run, attended.sentence, attended.translation, maps, list(pictures))
    archive = io.BytesIO()
    arrays = {use: np.asarray(array, np.float32) for use, array in attended.weights._asdict().items()}
    texts = {side: np.array(tokens, dtype=np.str_) for side, tokens in attended.labels._asdict().items()}
    np.savez_compressed(archive, allow_pickle=False, **arrays, **texts)
    return pictures | {f"{name}.html": page.encode(), f"{name}.npz": archive.getvalue()}


def slug(sentence: str) -> str:
    """A short file name: the sentence's first words, and a digest that distinguishes it from every other sentence."""
    text = normalise(sentence)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = textwrap.shorten(" ".join(re.findall(r"[a-z0-9]+", plain)), 40, placeholder="").split()
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:6]])


def render_page(run: str, sentence: str, translation: str, maps: dict[str, HeatMaps], pictures: list[str]) -> str:
    """The page as HTML; the files named in ``pictures`` show the maps of each use of attention without JavaScript."""
    texts = {"run": run, "sentence": sentence, "translation": translation, "pictures": ", ".join(pictures)}
    return Template(PAGE).substitute(
        {name: escape(text) for name, text in texts.items()},
        policy=content_policy(),
        style=STYLE,
        sections="".join(section(name, use) for name, use in maps.items()),
        weights=embed(maps),
        script=SCRIPT,
    )


def content_policy() -> str:
    """Forbids everything except the one style and the one script, identified by their SHA-256."""
    style, script = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in (STYLE, SCRIPT))
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def section(name: str, use: HeatMaps) -> str:
    """The title of a use of attention, and the element with its name, in which the script draws it."""
    axes = f"Rows are queries: {escape(use.queries_are)}; columns are keys: {escape(use.keys_are)}."
    content = f'<p class="quiet">{axes}</p>\n<div class="use" id="{escape(name)}"></div>'
    return f"<section>\n<h2>{escape(use.title)}</h2>\n{content}\n</section>\n"


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
