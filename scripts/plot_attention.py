"""Look inside a trained model: python scripts/plot_attention.py RUN "A sentence to translate." [key=value …].

Translates the sentence and shows the weights of every layer and head with that translation, in encoder-decoder
attention, encoder self-attention and decoder self-attention. RUN/attention then has, under a name made of the sentence,

  NAME.encoder-decoder.png, NAME.encoder.png and NAME.decoder.png   the pictures
  NAME.html   one page for a browser, where a click shows a head large, and every weight can be read
  NAME.npz    the weights: numpy.load("NAME.npz")["encoder"][layer, head, query, key], likewise decoder and
              encoder_decoder; the tokens of queries and keys are source_tokens, target_labels and target_inputs
"""

import argparse
import hashlib
import io
import re
import textwrap
import unicodedata
from pathlib import Path
from typing import NamedTuple

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

import jax.numpy as jnp
import numpy as np
from flax import nnx

from cli.command_line import command_line_with_options
from cli.load_run import load_trained
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from common.special_tokens import BOS, EOS
from data.pairs import normalise
from data.tokenizer import Tokenizer
from evaluation.attention_view.heatmaps import HeatMaps, png, svg
from evaluation.attention_view.page import Inside, page
from evaluation.attention_view.word_pairs import PairWeights, pair_weights, table, words_of
from evaluation.translate import Hypothesis, Translator
from model.attention_weights import AttentionWeights, compute_attention_weights
from model.transformer import Params

MOST_TOKENS = 60  # that are still legible along an axis
CUT = "…"  # what stands for EOS where the length limit ended a translation


class Labels(NamedTuple):
    """The tokens of rows and columns as text. ``target_labels`` are predicted where ``target_inputs`` are read."""

    source_tokens: list[str]
    target_inputs: list[str]
    target_labels: list[str]


def main() -> None:
    positionals = {
        "RUN": "a run directory, such as runs/tatoeba-small",
        "SENTENCE": f"what to translate, in quotes; up to {MOST_TOKENS} tokens",
    }
    arguments = command_line_with_options(__doc__ or "", positionals, add_options)
    with exit_on_user_error():
        pairs = [(first, second) for first, second in arguments.pair]
        plot_attention(Path(arguments.RUN), arguments.SENTENCE, arguments.overrides, pairs, arguments.svg)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pair",
        nargs=2,
        action="append",
        default=[],
        metavar=("WORD", "WORD"),
        help="print how much each head looks from one word to the other, in either direction, and put it into the "
        "page; words of the sentence or of its translation; may be given several times",
    )
    parser.add_argument("--svg", action="store_true", help="write the pictures as SVG instead of PNG")


def plot_attention(
    run_dir: Path, sentence: str, overrides: list[str], pairs: list[tuple[str, str]], as_svg: bool
) -> None:
    """Translate, take the weights with that translation, and show them; prints translation, word pairs and files.

    UserError, before anything is printed or written, for a sentence that cannot be drawn and for an unknown word.
    """
    trained = load_trained(run_dir, [*overrides, "decoding.batch_sentences=1"], "looking at it")
    if len(trained.params) > 1 or trained.config.decoding.mbr != "none":
        raise UserError("decoding.ensemble and decoding.mbr: what is drawn is one model and the translation it finds")
    translator, params, tokenizer = trained.translator, trained.params[0], trained.translator.tokenizer
    source = tokens_of(sentence, tokenizer)
    if len(source) + 1 > translator.positions:
        raise UserError(
            f"the sentence has {len(source) + 1} tokens, and this model's learned positions end at "
            f"{translator.positions} (model.max_positions)"
        )
    found = translator.search([params], [source], 1)[0][0]
    target = found.tokens
    refuse_too_long("the translation", target)
    weights, labels = look(translator, params, source, found)
    words = words_of(source, tokenizer), words_of(target, tokenizer)
    between = [each for pair in pairs for each in pair_weights(pair, *words, weights)]

    translation = translator.spell([target])[0]
    maps = pictures(weights, labels, f"{normalise(sentence)} → {translation}")
    inside = Inside(str(run_dir), normalise(sentence), translation, maps, between)
    files = contents(slug(sentence), inside, as_svg) | {f"{slug(sentence)}.npz": archive(weights, labels)}
    for file, content in files.items():
        write_atomically(run_dir / "attention" / file, content)
    report(translation, between, [run_dir / "attention" / file for file in files])


def look(
    translator: Translator, params: Params, source: list[int], found: Hypothesis
) -> tuple[AttentionWeights, Labels]:
    """The weights of the sentence and its translation, and what their rows and columns are called."""
    # Where the limit is that of learned positions, there is none for the row that nothing was chosen from.
    rows = int(min(len(found.tokens) + 1, translator.positions))
    inputs = [BOS, *found.tokens][:rows]
    model = nnx.merge(translator.graphdefs[0], params)
    weights = compute_attention_weights(model, jnp.array([*source, EOS]), jnp.array(inputs))
    pieces = translator.tokenizer.pieces
    last = pieces([EOS]) if found.ended else [CUT]
    return weights, Labels(pieces([*source, EOS]), pieces(inputs), [*pieces(found.tokens), *last][:rows])


def report(translation: str, pairs: list[PairWeights], paths: list[Path]) -> None:
    """Print the translation, the tables set off by empty lines, and the files."""
    print(translation)
    for pair in pairs:
        print(f"\n{table(pair)}")
    print("\n" * bool(pairs), end="")
    for path in paths:
        print(path)


def tokens_of(sentence: str, tokenizer: Tokenizer) -> list[int]:
    """The sentence's tokens; UserError if there are none, or too many to draw."""
    text = normalise(sentence)
    if not text:
        raise UserError("the sentence is empty: give the one to translate in quotes, after the run")
    if not is_unicode(text):
        raise UserError("the sentence is not UTF-8: set the terminal to UTF-8 and type it again")
    tokens = tokenizer.encode([text])[0]
    refuse_too_long("the sentence", tokens)
    return tokens


def is_unicode(text: str) -> bool:
    """False for an argument whose bytes were not UTF-8: Python hands them over as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def refuse_too_long(what: str, tokens: list[int]) -> None:
    if len(tokens) > MOST_TOKENS:
        raise UserError(f"{what} has {len(tokens)} tokens, too long to draw: choose one of at most {MOST_TOKENS}")


def pictures(weights: AttentionWeights, labels: Labels, subtitle: str) -> dict[str, HeatMaps]:
    """What to draw, by the end of the file's name.

    A row of the decoder is named after the token that its query predicts, EOS in the last; the query itself has read
    only what comes before: BOS and the tokens of the rows above.
    """
    encoder, decoder, encoder_decoder = map(np.asarray, weights)
    past = np.where(np.tri(decoder.shape[-1], dtype=bool), decoder, np.nan)
    sources, inputs, predicted = labels
    predicting = f"predicting ({CUT}: cut at the length limit)" if predicted[-1] == CUT else "predicting"
    titles = ["Encoder-decoder attention", "Encoder self-attention", "Decoder self-attention"]
    return {
        "encoder-decoder": HeatMaps(
            titles[0], subtitle, encoder_decoder, predicted, sources, predicting, "source token"
        ),
        "encoder": HeatMaps(
            titles[1], subtitle, encoder, sources, sources, "source token as query", "source token as key"
        ),
        "decoder": HeatMaps(titles[2], subtitle, past, predicted, inputs, predicting, "token read (grey: not yet)"),
    }


def contents(name: str, inside: Inside, as_svg: bool) -> dict[str, bytes]:
    """The pictures and the page by the names of their files."""
    ending, draw = ("svg", svg) if as_svg else ("png", png)
    files = {f"{name}.{use}.{ending}": draw(maps) for use, maps in inside.maps.items()}
    return files | {f"{name}.html": page(inside, list(files)).encode()}


def archive(weights: AttentionWeights, labels: Labels) -> bytes:
    """The weights as float32 and the labels as text, in NumPy's .npz format without pickles."""
    file = io.BytesIO()
    arrays = {name: np.asarray(array, np.float32) for name, array in weights._asdict().items()}
    texts = {name: np.array(tokens, dtype=np.str_) for name, tokens in labels._asdict().items()}
    np.savez_compressed(file, allow_pickle=False, **arrays, **texts)
    return file.getvalue()


def slug(sentence: str) -> str:
    """A short file name with the sentence's first words, and a digest that no other sentence shares."""
    text = normalise(sentence)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = textwrap.shorten(" ".join(re.findall(r"[a-z0-9]+", plain)), 40, placeholder="").split()
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:6]])


if __name__ == "__main__":
    main()
