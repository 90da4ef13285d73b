"""What the words of a source contribute: erase one, and measure what each word of the translation loses.

T target position or word · S source position or word
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float
from scipy.stats import rankdata

from common.special_tokens import EOS, PAD
from evaluation.faithfulness.attribution import Attributions, attribute
from evaluation.forced_scores import Pair, Words, force, spell_words
from evaluation.translate import Translator, pad_rows
from model.decoding.forced import token_log_probs
from model.transformer import Params

FEWEST_WORDS = 4  # in a source: with fewer, ranks mean little


class Studied(NamedTuple):
    """How much the log-probability of each target word of a sentence pair falls if a source word is erased."""

    effects: Float[np.ndarray, "T S"]
    attributed: Float[np.ndarray, "methods T S"]  # what each method attributes to that source word
    methods: list[str]


def study(translator: Translator, params: Params, pairs: Sequence[Pair]) -> Iterator[Studied]:
    """Study each pair of tokens; words are those between spaces, without punctuation at their ends.

    An erased word is left out of the source, and the words after it move up. Hiding the word from attention instead, so
    that the others keep their positions, is one of the methods: the agreement between these two ways of erasing bounds
    the agreement of any method with one of them.
    """
    model = nnx.merge(translator.graphdefs[0], params)
    words = [tuple(spell_words(side, translator.tokenizer) for side in pair) for pair in pairs]
    variants = [
        (variant, target)
        for (source, target), (source_words, _) in zip(pairs, words, strict=True)
        for put in ([], [PAD])
        for variant in [source, *(erase(source, span, put) for _, span in source_words)]
    ]
    scored = (row for _, row in force(translator, [params], variants, token_log_probs))
    shape = 1, 1 + max(len(side) for pair in pairs for side in pair)  # one for all: compiled once
    for pair, (source_words, target_words) in zip(pairs, words, strict=True):
        rows = (jnp.array(pad_rows([[*side, EOS]], shape)[0]) for side in pair)
        found = {name: sum_words(each, source_words, axis=1) for name, each in methods(attribute(model, *rows)).items()}
        effects, hidden = (losses(list(islice(scored, len(source_words) + 1)), len(pair[1])) for _ in range(2))
        found["hidden from attention"] = hidden
        of_words = [sum_words(each, target_words, axis=0) for each in (effects, *found.values())]
        yield Studied(of_words[0], np.stack(of_words[1:]), list(found))


def erase(tokens: list[int], word: range, put: list[int]) -> list[int]:
    """The tokens with ``put`` in place of each token of a word."""
    return tokens[: word.start] + put * len(word) + tokens[word.stop :]


def losses(log_probs: Sequence[np.ndarray], length: int) -> Float[np.ndarray, "T S"]:
    """How much each target token's log-probability falls from the first row to each of the others."""
    rows = np.stack([row[:length] for row in log_probs]).astype(np.float64)
    return (rows[0] - rows[1:]).T


def sum_words(values: Float[np.ndarray, "T S"], words: Words, axis: int) -> Float[np.ndarray, "_ _"]:
    """The sums over the tokens of each word."""
    return np.stack([values.take(span, axis).sum(axis) for _, span in words], axis)


def methods(found: Attributions) -> dict[str, Float[np.ndarray, "T S"]]:
    """The attributions by name; nearness of positions is the baseline that every method should beat."""
    targets, sources = (np.arange(length) for length in found.rollout.shape)
    maps: dict[str, Any] = {"rollout": found.rollout, "gradient × input": found.gradient}
    maps["nearness of places"] = -abs(targets[:, None] - sources)
    for layer, (weights, norms) in enumerate(zip(found.weights, found.norms, strict=True), start=1):
        maps |= {f"layer {layer}, mean of heads": weights.mean(axis=0), f"layer {layer}, norms": norms}
        maps |= {f"layer {layer}, head {head}": each for head, each in enumerate(weights, start=1)}
    return {name: np.asarray(each, np.float64) for name, each in maps.items()}


def rank_correlation(studied: Studied) -> Float[np.ndarray, " methods"]:
    """Spearman's correlation over source words, averaged over target words; 0 where all ranks are equal."""
    ranks = [rankdata(each, axis=-1) - (each.shape[-1] + 1) / 2 for each in studied[:2]]
    lengths = np.sqrt(np.square(ranks[0]).sum(-1) * np.square(ranks[1]).sum(-1))
    correlations: np.ndarray = (ranks[0] * ranks[1]).sum(-1) / np.where(lengths == 0, 1, lengths)
    return correlations.mean(axis=-1)


def same_first(studied: Studied) -> Float[np.ndarray, " methods"]:
    """The share of target words for which the source word with the largest value also has the largest effect."""
    agree: np.ndarray = studied.attributed.argmax(-1) == studied.effects.argmax(-1)
    return agree.mean(axis=-1)
