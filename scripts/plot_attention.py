"""Draw a trained model's attention: python scripts/plot_attention.py RUN "A sentence to translate." [key=value …].

Translates the sentence and draws the weights of every layer and head with that translation, as three pictures in
RUN/attention: encoder-decoder attention, encoder self-attention and decoder self-attention.
"""

import dataclasses
import hashlib
import re
import textwrap
import unicodedata
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from flax import nnx

from configs.command_line import command_line_of_several
from configs.load import differences, load_run_config
from configs.schema import RunConfig
from data.errors import UserError, exit_on_user_error
from data.files import write_atomically
from data.pairs import normalise
from data.tokenizer import BOS, EOS, Tokenizer, load_tokenizer
from evaluation.heatmaps import HeatMaps, png
from evaluation.translate import Translator
from model.transformer import build
from model.weights import AttentionWeights, attention_weights
from training.checkpoint import load_for_inference

MOST_TOKENS = 60  # that are still legible along an axis


def main() -> None:
    positionals = {
        "RUN": "a run directory, such as runs/tatoeba-small",
        "SENTENCE": f"what to translate, in quotes; up to {MOST_TOKENS} tokens",
    }
    (run_dir, sentence), overrides = command_line_of_several(__doc__ or "", positionals)
    with exit_on_user_error():
        plot_attention(Path(run_dir), sentence, overrides)


def plot_attention(run_dir: Path, sentence: str, overrides: list[str]) -> None:
    """Translate, take the weights with that translation, and draw them; prints the translation and the files."""
    config, tokenizer = load_config_of(run_dir, overrides), load_tokenizer(run_dir)
    source = tokens_of(sentence, tokenizer)
    params, _ = load_for_inference(run_dir, config.decoding.checkpoint, config.model, tokenizer.vocab_size)
    graphdef = build(config.model, tokenizer.vocab_size)
    translator = Translator(graphdef, tokenizer, dataclasses.replace(config.decoding, batch_sentences=1))
    target = translator.search(params, [source])[0]
    refuse_too_long("the translation", target)
    translation = translator.spell([target])[0]
    print(translation)
    model = nnx.merge(graphdef, params)
    weights = attention_weights(model, jnp.array([*source, EOS]), jnp.array([BOS, *target]))
    subtitle = f"{normalise(sentence)} → {translation}"
    for name, maps in pictures(weights, tokenizer, source, target, subtitle).items():
        path = run_dir / "attention" / f"{slug(sentence)}.{name}.png"
        write_atomically(path, png(maps))
        print(path)


def load_config_of(run_dir: Path, overrides: list[str]) -> RunConfig:
    """The run's config with overrides of how it translates; UserError for any other."""
    config = load_run_config(run_dir, overrides)
    for difference in differences(load_run_config(run_dir), config):
        if not difference.startswith(("decoding.", "model.dtype:", "model.matmul_dtype:")):
            raise UserError(f"{run_dir} is trained, so looking at it cannot change {difference}")
    return config


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


def pictures(
    weights: AttentionWeights, tokenizer: Tokenizer, source: list[int], target: list[int], subtitle: str
) -> dict[str, HeatMaps]:
    """What to draw, by the end of the file's name.

    A row of the decoder is named after the token that its query predicts, EOS in the last; the query itself has read
    only what comes before: BOS and the tokens of the rows above.
    """
    encoder, decoder, encoder_decoder = map(np.asarray, weights)
    past = np.where(np.tri(len(target) + 1, dtype=bool), decoder, np.nan)
    sources, inputs, labels = map(tokenizer.pieces, ([*source, EOS], [BOS, *target], [*target, EOS]))
    titles = ["Encoder-decoder attention", "Encoder self-attention", "Decoder self-attention"]
    return {
        "encoder-decoder": HeatMaps(
            titles[0], subtitle, encoder_decoder, labels, sources, "predicting", "source token"
        ),
        "encoder": HeatMaps(
            titles[1], subtitle, encoder, sources, sources, "source token as query", "source token as key"
        ),
        "decoder": HeatMaps(titles[2], subtitle, past, labels, inputs, "predicting", "token read (grey: not yet)"),
    }


def slug(sentence: str) -> str:
    """A short file name with the sentence's first words, and a digest that no other sentence shares."""
    text = normalise(sentence)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = textwrap.shorten(" ".join(re.findall(r"[a-z0-9]+", plain)), 40, placeholder="").split()
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:6]])


if __name__ == "__main__":
    main()
