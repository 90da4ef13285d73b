"""The weight from one word to another, by hand."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from evaluation.attention_view.word_pairs import PairWeights, Word, find_words, format_table, matching, pair_weights
from model.decoding.forced import AttentionWeights

# Two layers and two heads; a sentence "man saw x" in four tokens and EOS, a translation "vio hombre" in three tokens.
MAN, SAW = Word("man", "man", range(1)), Word("saw", "saw", range(1, 3))
VIO, HOMBRE = Word("vio", "Vio", range(2)), Word("hombre", "hombre", range(2, 3))
DRAWN = np.random.default_rng(0)
WEIGHTS = AttentionWeights(
    *(jnp.asarray(DRAWN.integers(0, 100, shape), jnp.float32) for shape in ((2, 2, 5, 5), (2, 2, 4, 4), (2, 2, 4, 5)))
)


def found(pair, source=(MAN, SAW), target=(VIO, HOMBRE)):
    weights = pair_weights(pair, list(source), list(target), WEIGHTS)
    return {(each.use, each.query, each.key): each.weights for each in weights}


def test_weights_by_hand():
    """The mean over the query's tokens of the sum over the key's, whatever the order in which the words are named."""
    source, across, past = "encoder self-attention", "encoder-decoder attention", "decoder self-attention"
    both = found(("man", "saw"))
    assert list(both) == [(source, "man", "saw"), (source, "saw", "man")]
    encoder, decoder, crossing = (np.asarray(weights) for weights in WEIGHTS)
    np.testing.assert_array_equal(both[source, "man", "saw"], encoder[:, :, 0, 1] + encoder[:, :, 0, 2])
    np.testing.assert_array_equal(both[source, "saw", "man"], (encoder[:, :, 1, 0] + encoder[:, :, 2, 0]) / 2)
    for pair in (("VIO", "saw"), ("saw!", "¡vio!")):  # row 0 predicts token 0
        ((named, weights),) = found(pair).items()
        assert named == (across, "Vio", "saw")
        np.testing.assert_array_equal(weights, crossing[:, :, :2, 1:3].sum((2, 3)) / 2)
    for pair in (("vio", "hombre"), ("hombre", "vio")):  # row 2 predicts token 2, column 1 reads token 0
        ((named, weights),) = found(pair).items()
        assert named == (past, "hombre", "Vio")
        np.testing.assert_array_equal(weights, decoder[:, :, 2, 1] + decoder[:, :, 2, 2])


def test_words_of_both_sides_have_every_use_and_every_occurrence():
    tom, ana = Word("tom", "Tom", range(1)), Word("ana", "Ana", range(2, 3))
    first, second = Word("tom", "Tom#1", range(1)), Word("tom", "Tom#2", range(1, 2))
    weights = found(("Tom", "Ana"), (tom, ana), (first, second, ana))
    across, source, past = "encoder-decoder attention", "encoder self-attention", "decoder self-attention"
    assert list(weights) == [
        (across, "Tom#1", "Ana"),
        (across, "Tom#2", "Ana"),
        (across, "Ana", "Tom"),
        (source, "Tom", "Ana"),
        (source, "Ana", "Tom"),
        (past, "Ana", "Tom#1"),
        (past, "Ana", "Tom#2"),
    ]
    np.testing.assert_array_equal(weights[past, "Ana", "Tom#2"], WEIGHTS.decoder[:, :, 2, 2])
    assert list(found(("Tom", "Tom"), (tom,), (first, second))) == [
        (across, "Tom#1", "Tom"),
        (across, "Tom#2", "Tom"),
        (source, "Tom", "Tom"),
        (past, "Tom#2", "Tom#1"),
    ]


def test_an_unknown_word_is_refused_with_a_list_of_the_known_ones():
    with pytest.raises(UserError) as error:
        found(("man", "woman\n"))
    expected = "--pair: woman is no word of the sentence (man, saw) or of the translation (Vio, hombre)"
    assert str(error.value) == expected
    with pytest.raises(UserError, match=r"^--pair vio vio: .* cannot look at itself$"):
        found(("vio", "vio"))


def test_words_are_made_of_all_their_pieces_but_punctuation(translator):
    tokenizer = translator.tokenizer
    text = "«Tom» eats: oranste, — tom DON'T serotan: é"
    tokens = tokenizer.encode([text])[0]
    words = find_words(tokens, tokenizer)
    assert [word.name for word in words] == ["Tom#1", "eats", "oranste", "—", "tom#2", "DON'T", "serotan", "é"]
    spelled = ["".join(tokenizer.pieces(tokens[word.places.start : word.places.stop])) for word in words]
    assert [spelling.strip("␣") for spelling in spelled][1:3] == ["eats", "oranste"]
    assert len(words[2].places) > 1 and tokenizer.pieces(tokens)[words[1].places.stop] == "<0x3A>"  # a colon
    assert spelled[-1] == "␣<0xC3><0xA9>"
    assert all(before.places.stop <= after.places.start for before, after in pairwise(words))
    assert [word.name for word in matching("dont", words)] == ["DON'T"]
    assert [word.name for word in matching("TOM.", words)] == ["Tom#1", "tom#2"]
    assert find_words([], tokenizer) == []


def test_a_space_that_is_a_piece_belongs_to_the_word_that_it_begins(translator):
    tokenizer = translator.tokenizer
    pieces = tokenizer.pieces(list(range(tokenizer.vocab_size)))
    space, o, a, stop = (pieces.index(piece) for piece in ("␣", "o", "a", "."))
    words = find_words([space, o, a, stop, space, space, stop, a, o, space, stop], tokenizer)
    assert words == [Word("oa", "oa", range(3)), Word("ao", "ao", range(7, 9)), Word(".", ".", range(9, 11))]


def test_a_table_is_aligned_and_has_the_mean():
    weights = np.array([[0.25, 0.5], [1.0, 0.0]], np.float32)
    assert format_table(PairWeights("encoder self-attention", "a", "b", weights)).splitlines() == [
        "a → b (encoder self-attention)",
        "          head 1   head 2     mean",
        "layer 1    0.250    0.500    0.375",
        "layer 2    1.000    0.000    0.500",
    ]
