"""How much one word attends to another: the weights of all heads between the tokens of two words.

A word is the text between spaces without the punctuation at its ends; it has one or more tokens. The weight from word
to word is the mean, over the query word's tokens, of the sum over the key word's tokens.

L layer · N query head · T query position · S key position
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product

import numpy as np
from jaxtyping import Float

from common.errors import UserError
from data.pairs import PUNCTUATION, fold, normalise
from data.tokens.tokenizer import Tokenizer
from model.decoding.forced import AttentionWeights


@dataclass(frozen=True)
class Word:
    """A word, folded for comparison; a name that is unique in its sentence; and the places of its tokens."""

    folded: str
    name: str
    places: range


@dataclass(frozen=True)
class PairWeights:
    """Each head's weight from the query word to the key word, in one use of attention."""

    use: str
    query: str
    key: str
    weights: Float[np.ndarray, "L N"]

    @property
    def title(self) -> str:
        return f"{self.query} → {self.key} ({self.use})"

    @property
    def rows(self) -> list[list[str]]:
        """A header, and a row for each layer: the weights of its heads and their mean."""
        header = ["", *(f"head {head + 1}" for head in range(self.weights.shape[1])), "mean"]
        layers = enumerate(self.weights, start=1)
        return [header, *([f"layer {layer}", *(f"{w:.3f}" for w in (*row, row.mean()))] for layer, row in layers)]


def find_words(tokens: list[int], tokenizer: Tokenizer) -> list[Word]:
    """The words of tokens without BOS and EOS; words that occur several times are numbered: the#1, the#2."""
    spelled = [(text[core(text)], span) for text, span in spell_words(tokens, tokenizer)]
    folded, words = [fold(text) for text, _ in spelled], []
    for number, ((text, span), word) in enumerate(zip(spelled, folded, strict=True), start=1):
        words.append(Word(word, text if folded.count(word) == 1 else f"{text}#{folded[:number].count(word)}", span))
    return words


def spell_words(tokens: list[int], tokenizer: Tokenizer) -> list[tuple[str, range]]:
    """The text and the token places of each word, without tokens of punctuation at its ends.

    A space that is a token of its own belongs to the word that it directly precedes.
    """
    pieces, texts = tokenizer.pieces(tokens), tokenizer.decode([[token] for token in tokens])
    starts = [place for place, piece in enumerate(pieces) if place == 0 or piece.startswith("␣")]
    whole = [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(pieces)], strict=False)]
    cores = [span[core(texts[span.start : span.stop])] for span in whole]
    spans = [range(span.start - (pieces[span.start - 1 : span.start] == ["␣"]), span.stop) for span in cores]
    words = map(normalise, tokenizer.decode([tokens[span.start : span.stop] for span in spans]))
    return [(word, span) for word, span in zip(words, spans, strict=True) if word]


def core(parts: Sequence[str]) -> slice:
    """From the first to the last part with a letter or a digit; all parts if none has one."""
    # A byte of a multi-byte letter decodes to U+FFFD, which must count as a letter although it is a symbol.
    bare = [part.replace("\ufffd", "letter").translate(PUNCTUATION).strip() for part in parts]
    places = [place for place, part in enumerate(bare) if part]
    return slice(places[0], places[-1] + 1) if places else slice(None)


def pair_weights(
    pair: tuple[str, str], source: list[Word], target: list[Word], attention_weights: AttentionWeights
) -> list[PairWeights]:
    """The weights between two words of the sentence or its translation, both ways, in every use that connects them.

    UserError for a word in neither, and if no use connects the two.
    """
    for word in pair:
        if not matching(word, source + target):
            sentence, translation = (", ".join(each.name for each in words) for words in (source, target))
            known = f"the sentence ({sentence}) or of the translation ({translation})"
            raise UserError(f"--pair: {normalise(word)} is no word of {known}")
    encoder, decoder, encoder_decoder = map(np.asarray, attention_weights)
    found = []
    for use, weights, queries, keys, causal in (
        ("encoder-decoder attention", encoder_decoder, target, source, False),
        ("encoder self-attention", encoder, source, source, False),
        ("decoder self-attention", decoder[..., 1:], target, target, True),
    ):
        both_ways = [product(matching(one, queries), matching(other, keys)) for one, other in (pair, pair[::-1])]
        for query, key in dict.fromkeys(chain(*both_ways)):
            if causal and key.places.stop > query.places.start:
                continue
            rows, columns = (slice(word.places.start, word.places.stop) for word in (query, key))
            mean = weights[:, :, rows, columns].sum(axis=-1).mean(axis=-1)
            found.append(PairWeights(use, query.name, key.name, mean))
    if not found:
        raise UserError(f"--pair {' '.join(pair)}: the translation has this word once, and it cannot look at itself")
    return found


def matching(word: str, words: list[Word]) -> list[Word]:
    """The words equal to this one but for case and punctuation."""
    return [candidate for candidate in words if candidate.folded == fold(normalise(word))]


def format_table(pair: PairWeights) -> str:
    left = max(len(name) for name, *_ in pair.rows)
    lines = (name.ljust(left) + "".join(f"{cell:>9}" for cell in cells) for name, *cells in pair.rows)
    return "\n".join([pair.title, *lines])
