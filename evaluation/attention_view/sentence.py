"""The attention weights of one sentence and its translation, and the files that show them."""

import hashlib
import io
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx

from common.errors import UserError
from common.special_tokens import BOS, EOS
from data.pairs import normalise
from evaluation.attention_view.heatmaps import HeatMaps, png, svg
from evaluation.attention_view.page import SentenceView, render_page
from evaluation.attention_view.word_pairs import PairWeights, find_words, pair_weights
from evaluation.translate import Translator
from model.decoding.forced import AttentionWeights, compute_attention_weights
from model.transformer import Params

MOST_TOKENS = 60  # that are still legible along an axis
CUT = "…"  # replaces EOS where the length limit ended a translation


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
    source: list[int]  # without EOS
    target: list[int]
    weights: AttentionWeights
    labels: Labels


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
    return AttendedSentence(normalise(sentence), translation, source, found.tokens, weights, labels)


def encode_sentence(translator: Translator, sentence: str) -> list[int]:
    text = normalise(sentence)
    if not text:
        raise UserError("the sentence is empty: give the one to translate in quotes, after the run")
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # Python's form of arguments that are not UTF-8
        raise UserError("the sentence is not UTF-8: set the terminal to UTF-8 and type it again")
    source = translator.tokenizer.encode([text])[0]
    check_length("the sentence", source)
    if len(source) + 1 > translator.positions:
        raise UserError(
            f"the sentence has {len(source) + 1} tokens, but this model's learned positions end at "
            f"{translator.positions} (model.max_positions)"
        )
    return source


def check_length(what: str, tokens: list[int]) -> None:
    if len(tokens) > MOST_TOKENS:
        raise UserError(f"{what} has {len(tokens)} tokens, too long to draw: choose one of at most {MOST_TOKENS}")


def weigh_pairs(attended: AttendedSentence, translator: Translator, pairs: list[tuple[str, str]]) -> list[PairWeights]:
    """The weights between the words of each pair; UserError for an unknown word."""
    source, target = (find_words(tokens, translator.tokenizer) for tokens in (attended.source, attended.target))
    return [found for pair in pairs for found in pair_weights(pair, source, target, attended.weights)]


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


def render_files(attended: AttendedSentence, pairs: list[PairWeights], run: str, as_svg: bool) -> dict[str, bytes]:
    """The pictures, the page and the archive of weights by the names of their files."""
    name, maps = slug(attended.sentence), heat_maps(attended)
    ending, draw = ("svg", svg) if as_svg else ("png", png)
    pictures = {f"{name}.{use}.{ending}": draw(use_maps) for use, use_maps in maps.items()}
    page = render_page(SentenceView(run, attended.sentence, attended.translation, maps, pairs), list(pictures))
    return pictures | {f"{name}.html": page.encode(), f"{name}.npz": archive(attended)}


def archive(attended: AttendedSentence) -> bytes:
    """The weights as float32 and the labels as text, in NumPy's .npz format without pickles."""
    file = io.BytesIO()
    arrays = {name: np.asarray(array, np.float32) for name, array in attended.weights._asdict().items()}
    texts = {name: np.array(tokens, dtype=np.str_) for name, tokens in attended.labels._asdict().items()}
    np.savez_compressed(file, allow_pickle=False, **arrays, **texts)
    return file.getvalue()


def slug(sentence: str) -> str:
    """A short file name: the sentence's first words, and a digest that distinguishes it from every other sentence."""
    text = normalise(sentence)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = textwrap.shorten(" ".join(re.findall(r"[a-z0-9]+", plain)), 40, placeholder="").split()
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:6]])
