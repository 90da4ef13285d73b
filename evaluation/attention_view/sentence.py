"""The attention weights of one sentence and its translation, and the files that show them: a page and an archive."""

import hashlib
import io
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float

from common.errors import UserError
from common.page.page import embed, fill, render_page
from common.special_tokens import BOS, EOS
from data.pairs import normalise
from evaluation.translate import Translator, read
from model.decoding.forced import AttentionWeights, compute_attention_weights
from model.transformer import Params

MOST_TOKENS = 60  # more would not be legible along an axis
# One model, and the translation that its search finds.
ONE_SEARCH = [f"decoding.{change}" for change in ("ensemble=[]", "mbr=none", "candidates=0", "batch_sentences=1")]
CUT = "…"  # replaces EOS if the length limit ended the translation
BODY, STYLE, MAPS, SCRIPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("page.html", "maps.css", "maps.js", "page.js")
)


class Labels(NamedTuple):
    """The tokens of rows and columns. The model predicts ``target_labels[t]`` from ``target_inputs[: t + 1]``."""

    source_tokens: list[str]
    target_inputs: list[str]
    target_labels: list[str]


@dataclass(frozen=True)
class AttendedSentence:
    """A sentence, its translation, and the attention weights of both."""

    sentence: str
    translation: str
    weights: AttentionWeights
    labels: Labels

    def _repr_html_(self) -> str:
        """A table for notebooks: encoder-decoder attention, the mean over the heads of the last layer."""
        maps = heat_maps(self)[0]
        rows = ["<th></th>" + "".join(f"<th>{escape(key)}</th>" for key in maps.keys)]
        for query, weights in zip(maps.queries, maps.weights[-1].mean(axis=0), strict=True):
            cells = (f"<td style='background: rgb(183 55 121 / {weight:.2f})'>{weight:.2f}</td>" for weight in weights)
            rows.append(f"<th>{escape(query)}</th>" + "".join(cells))
        return f"<table><tr>{'</tr><tr>'.join(rows)}</tr></table>"


def translate_and_attend(translator: Translator, params: Params, sentence: str) -> AttendedSentence:
    """Translate a sentence and compute the attention weights for that translation.

    UserError if the sentence is empty or not text, or if it or its translation is too long to draw.
    """
    source, pieces = encode_sentence(translator, sentence), translator.tokenizer.pieces
    found = translator.search([params], [source], 1)[0][0]
    check_length("the translation", found.tokens)
    # If learned positions set the length limit, there is no row after the last token.
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


@dataclass(frozen=True)
class HeatMaps:
    """One use of attention: its weights, NaN where a query cannot see a key, and the tokens of rows and columns.

    L layer · N query head · T query position · S key position
    """

    title: str
    weights: Float[np.ndarray, "L N T S"]
    queries: list[str]
    keys: list[str]
    queries_are: str
    keys_are: str

    def for_page(self) -> dict[str, Any]:
        """The data for maps.js; weights have four decimals, or are null."""
        weights = np.round(self.weights.astype(np.float64), 4).astype(object)
        weights[np.isnan(self.weights)] = None
        return vars(self) | {"weights": weights.tolist()}


def heat_maps(attended: AttendedSentence) -> list[HeatMaps]:
    """Encoder-decoder attention, and the self-attention of the encoder and the decoder."""
    encoder, decoder, encoder_decoder = map(np.asarray, attended.weights)
    past = np.where(np.tri(decoder.shape[-1], dtype=bool), decoder, np.nan)
    sources, inputs, predicted = attended.labels
    predicting = f"predicting ({CUT}: cut at the length limit)" if predicted[-1] == CUT else "predicting"
    source = "source token as query", "source token as key"
    return [
        HeatMaps("Encoder-decoder attention", encoder_decoder, predicted, sources, predicting, "source token"),
        HeatMaps("Encoder self-attention", encoder, sources, sources, *source),
        HeatMaps("Decoder self-attention", past, predicted, inputs, predicting, "token read (grey: not yet)"),
    ]


def render_files(attended: AttendedSentence, run: str) -> dict[str, bytes]:
    """The page and the archive of weights, by file name."""
    name, archive = slug(attended.sentence), io.BytesIO()
    arrays = {use: np.asarray(array, np.float32) for use, array in attended.weights._asdict().items()}
    texts = {side: np.array(tokens, dtype=np.str_) for side, tokens in attended.labels._asdict().items()}
    np.savez_compressed(archive, allow_pickle=False, **arrays, **texts)
    page = render_attention_page(attended, run, f"{name}.npz")
    return {f"{name}.html": page.encode(), f"{name}.npz": archive.getvalue()}


def render_attention_page(attended: AttendedSentence, run: str, archive: str) -> str:
    texts = {"run": run, "sentence": attended.sentence, "translation": attended.translation, "archive": archive}
    weights = embed("weights", [maps.for_page() for maps in heat_maps(attended)])
    return render_page(f"Attention: {attended.sentence}", fill(BODY, **texts), STYLE, [MAPS, SCRIPT], [weights])


def slug(sentence: str) -> str:
    """A short file name: the sentence's first words, and a digest that tells it apart from other sentences."""
    text = normalise(sentence)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = textwrap.shorten(" ".join(re.findall(r"[a-z0-9]+", plain)), 40, placeholder="").split()
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:6]])
