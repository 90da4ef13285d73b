"""How much one word looks at another: the weights of all heads between the pieces of two words.

A word is what stands between spaces, less the punctuation at its ends, and is made of one piece or of several. The
weight from word to word is the mean, over the query word's pieces, of the sum over the key word's pieces.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float

from common.errors import UserError
from data.pairs import PUNCTUATION, fold, normalise
from data.tokenizer import Tokenizer
from model.attention_weights import AttentionWeights


@dataclass(frozen=True)
class Word:
    """A word as it is compared, without case; a name that no other word of its sentence has; and its pieces' places."""

    folded: str
    name: str
    pieces: range


Words = tuple[list[Word], list[Word]]  # those that are the first word of a pair, and the second


@dataclass(frozen=True)
class PairWeights:
    """What each head gives to the key word when the query is the query word, in one use of attention."""

    use: str
    query: str
    key: str
    weights: Float[np.ndarray, "L N"]


def words_of(tokens: list[int], tokenizer: Tokenizer) -> list[Word]:
    """The words of tokens without BOS and EOS. One that comes again is numbered from its first time: the#1, the#2."""
    spans = spans_of(tokens, tokenizer)
    texts = [normalise(text) for text in tokenizer.decode([tokens[span.start : span.stop] for span in spans])]
    return numbered([(text[core(text)], span) for text, span in zip(texts, spans, strict=True) if text])


def spans_of(tokens: list[int], tokenizer: Tokenizer) -> list[range]:
    """Where the pieces of each word are: from one that begins with a space to the next, less punctuation at the ends.

    A space that is a piece of its own belongs to the word if nothing stands between them.
    """
    pieces, texts = tokenizer.pieces(tokens), tokenizer.decode([[token] for token in tokens])
    starts = [place for place, piece in enumerate(pieces) if place == 0 or piece.startswith("␣")]
    whole = [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(pieces)], strict=False)]
    cores = [span[core(texts[span.start : span.stop])] for span in whole]
    return [range(span.start - (pieces[span.start - 1 : span.start] == ["␣"]), span.stop) for span in cores]


def core(parts: Sequence[str]) -> slice:
    """From the first to the last part that has a letter or a digit; all of them if none has."""
    # A byte of a letter that has several spells U+FFFD, which as a symbol would not count.
    bare = [part.replace("\ufffd", "letter").translate(PUNCTUATION).strip() for part in parts]
    kept = [place for place, part in enumerate(bare) if part]
    return slice(kept[0], kept[-1] + 1) if kept else slice(None)


def numbered(spans: list[tuple[str, range]]) -> list[Word]:
    """Words from their texts and pieces, in order."""
    times, seen, words = Counter(fold(text) for text, _ in spans), Counter[str](), []
    for text, span in spans:
        folded = fold(text)
        seen[folded] += 1
        words.append(Word(folded, text if times[folded] == 1 else f"{text}#{seen[folded]}", span))
    return words


def pair_weights(
    pair: tuple[str, str], source: list[Word], target: list[Word], weights: AttentionWeights
) -> list[PairWeights]:
    """The weights between the two words, in both directions, wherever one can look at the other.

    ``source`` and ``target`` are the words of the sentence and of its translation, and ``weights`` is what
    ``compute_attention_weights`` gives for both. UserError for a word in neither, and if no word looks at the other
    anywhere.
    """
    in_source, in_target = find(pair, source, target)
    encoder, decoder, encoder_decoder = map(np.asarray, weights)
    found = [
        *between("encoder-decoder attention", encoder_decoder, either_way(in_target, in_source)),
        *between("encoder self-attention", encoder, either_way(in_source, in_source)),
        *between("decoder self-attention", decoder[..., 1:], to_the_past(either_way(in_target, in_target))),
    ]
    if not found:
        raise UserError(f"--pair {' '.join(pair)}: the translation has this word once, and it cannot look at itself")
    return found


def find(pair: tuple[str, str], source: list[Word], target: list[Word]) -> tuple[Words, Words]:
    """Every time that the first and the second word come in the sentence, and in the translation."""
    for word in pair:
        if not matching(word, source + target):
            told, translated = (", ".join(each.name for each in words) for words in (source, target))
            message = (
                f"--pair: {normalise(word)} is no word of the sentence ({told}) or of the translation ({translated})"
            )
            raise UserError(message)
    first, second = pair
    return (matching(first, source), matching(second, source)), (matching(first, target), matching(second, target))


def matching(word: str, words: list[Word]) -> list[Word]:
    """The words that are this one but for case and punctuation."""
    return [candidate for candidate in words if candidate.folded == fold(normalise(word))]


def either_way(queries: Words, keys: Words) -> Iterator[tuple[Word, Word]]:
    """The first word as query with the second as key, then the second with the first; each combination once."""
    both = [*product(queries[0], keys[1]), *product(queries[1], keys[0])]
    return iter(dict.fromkeys(both))


def to_the_past(pairs: Iterator[tuple[Word, Word]]) -> Iterator[tuple[Word, Word]]:
    """Those that causality allows: the query comes later."""
    return ((query, key) for query, key in pairs if key.pieces.stop <= query.pieces.start)


def between(
    use: str, weights: Float[np.ndarray, "L N T S"], pairs: Iterator[tuple[Word, Word]]
) -> Iterator[PairWeights]:
    """The weights of each pair of words, whose pieces are rows and columns of ``weights``."""
    for query, key in pairs:
        rows, columns = (slice(word.pieces.start, word.pieces.stop) for word in (query, key))
        yield PairWeights(use, query.name, key.name, weights[:, :, rows, columns].sum(axis=-1).mean(axis=-1))


def table(pair: PairWeights) -> str:
    """The weights as aligned lines: a title, then a row for each layer with its heads and their mean."""
    layers, heads = pair.weights.shape
    names = [*(f"head {head + 1}" for head in range(heads)), "mean"]
    left = len(f"layer {layers}")
    lines = [f"{pair.query} → {pair.key} ({pair.use})", " " * left + "".join(f"{name:>9}" for name in names)]
    for layer, weights in enumerate(pair.weights, start=1):
        cells = "".join(f"{weight:9.3f}" for weight in [*weights, weights.mean()])
        lines.append(f"{f'layer {layer}':<{left}}{cells}")
    return "\n".join(lines)
