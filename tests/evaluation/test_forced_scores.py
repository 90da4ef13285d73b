"""Which tokens are a word's, for the alignment of words."""

import math
from itertools import pairwise

import pytest

from evaluation.forced_scores import score_translations, spell_words


def test_words_are_made_of_all_their_pieces_but_punctuation(translator):
    tokenizer = translator.tokenizer
    tokens = tokenizer.encode(['"Tom" eats: oranste, — tom DON\'T serotan: é'])[0]
    words, places = zip(*spell_words(tokens, tokenizer), strict=True)
    assert words == ("Tom", "eats", "oranste", "—", "tom", "DON'T", "serotan", "é")
    spelled = ["".join(tokenizer.pieces(tokens[span.start : span.stop])) for span in places]
    assert [spelling.strip("␣") for spelling in spelled][1:3] == ["eats", "oranste"]
    assert len(places[2]) > 1 and tokenizer.pieces(tokens)[places[1].stop] == "<0x3A>"  # a colon
    assert spelled[-1] == "␣<0xC3><0xA9>"
    assert all(before.stop <= after.start for before, after in pairwise(places))
    assert spell_words([], tokenizer) == []


def test_a_space_that_is_a_piece_belongs_to_the_word_that_it_begins(translator):
    tokenizer = translator.tokenizer
    pieces = tokenizer.pieces(list(range(tokenizer.vocab_size)))
    space, o, a, stop = (pieces.index(piece) for piece in ("␣", "o", "a", "."))
    words = spell_words([space, o, a, stop, space, space, stop, a, o, space, stop], tokenizer)
    assert words == [("oa", range(3)), ("ao", range(7, 9)), (".", range(9, 11))]


@pytest.mark.slow
def test_sentences_that_were_translated_apart_are_scored_apart(translator, params):
    """So a search's own translation has the search's score; with another number of sentences, the pair is one."""
    whole = "Tom eats here. Ana runs there."
    first, second = whole[:14], whole[15:]
    pairs = [(first, "Ana runs."), (second, "Tom eats!"), (whole, "Ana runs. Tom eats!"), (whole, "Ana")]
    one, other, both, apart = score_translations(translator, params, pairs)
    assert both.tokens == [*one.tokens, *other.tokens]
    assert both.token_log_probs == [*one.token_log_probs, *other.token_log_probs]
    assert math.isclose(both.score, one.score + other.score) and math.isclose(both.log_prob, sum(both.token_log_probs))
    assert apart.tokens.count("</s>") == 1
    for same in ("Tom\u200b ea\u00adts here.", "TOM EATS HERE."):
        assert score_translations(translator, params, [(same, "Ana runs.")]) == [one]
