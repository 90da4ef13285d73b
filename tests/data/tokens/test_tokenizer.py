import random
import re

import pytest

from common.errors import UserError
from common.special_tokens import BOS, EOS, PAD
from data.config import TokenizerConfig
from data.pairs import Pairs, normalise
from data.tokens.tokenizer import Tokenizer, train

CONFIG = TokenizerConfig(vocab_size=330)
ODD = ["", "▁", "a\0b", "\x1b[2J", "a\rb\u2028c\x85d", "a▁b ▁▁", "<s> </s> <unk> <pad> <0x41> <0x1F>"]
ODD += ["漢字 😀 \u200b", "\ufeffx", "⁇ ▅ �", "\x01\x7f", "ﬁ ² Å"]


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_line_of_the_real_corpus_comes_back(real_splits, real_tokenizer, split):
    pairs, _ = real_splits[split]
    for side in (pairs.sources, pairs.targets):
        ids = real_tokenizer.encode(side)
        assert real_tokenizer.decode(ids) == side
        assert min(min(sentence) for sentence in ids) > EOS  # bytes spell what the vocabulary lacks, never UNK


def test_odd_text_comes_back(phrase_tokenizer):
    odd = [normalise(text) for text in ODD]
    assert phrase_tokenizer.decode(phrase_tokenizer.encode(odd)) == odd
    assert [phrase_tokenizer.decode(found) for found in phrase_tokenizer.segmentations(odd)] == [
        [text] * len(found) for text, found in zip(odd, phrase_tokenizer.segmentations(odd), strict=True)
    ]
    assert phrase_tokenizer.encode([]) == phrase_tokenizer.decode([]) == []


def test_pieces_are_legible_and_spell_the_sentence(phrase_tokenizer):
    ids = phrase_tokenizer.encode(["Tom sees ñ."])[0]
    pieces = phrase_tokenizer.pieces([BOS, *ids, EOS])
    assert (pieces[0], pieces[-1]) == ("<s>", "</s>")
    assert "".join(pieces[1:-1]) == "␣Tom␣sees␣<0xC3><0xB1>."
    assert phrase_tokenizer.pieces([]) == []


@pytest.mark.parametrize("sentence", ["Tom sees a house.", "Ñu y 漢字", "<s> a", "a▁b", "aa  b"])
def test_the_tokens_of_a_sentence_spell_every_beginning_of_it(phrase_tokenizer, sentence):
    for length in range(1, len(sentence) + 1):
        table, state = phrase_tokenizer.spelling(sentence[:length])[0], 0
        for token in phrase_tokenizer.encode([sentence])[0]:
            state = table[state, token]
            assert state >= 0
        assert state == len(table) - 1


@pytest.mark.parametrize("text", ["Tom s", "Tom ", "Ñ", "漢字 y", "El", "a▁"])
def test_whatever_tokens_spell_a_beginning_the_text_begins_with_it(phrase_tokenizer, text):
    chance, (table, strict) = random.Random(0), phrase_tokenizer.spelling(text)
    for _ in range(50):
        tokens, state = list[int](), 0
        while state < len(table) - 1:
            tokens.append(chance.choice((table[state] >= 0).nonzero()[0].tolist()))
            state = table[state, tokens[-1]]
        assert phrase_tokenizer.decode([tokens])[0].startswith(text)
    only, state = list[int](), strict
    while state < len(table) - 2:
        [token] = (table[state] >= 0).nonzero()[0].tolist()
        only, state = [*only, token], table[state, token]
    assert only == phrase_tokenizer.encode([text])[0]
    assert (state == len(table) - 2) == text.endswith(" ")
    assert (table[-1] >= 0).tolist() == [token >= EOS for token in range(phrase_tokenizer.vocab_size)]


def test_special_symbols_spell_nothing(phrase_tokenizer):
    ids = phrase_tokenizer.encode(["Tom sees a house."])[0]
    assert phrase_tokenizer.decode([[BOS, *ids, EOS, PAD, PAD]]) == ["Tom sees a house."]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_two_trainings_give_the_same_bytes_and_no_noise(phrases, kind, capfd):
    config = TokenizerConfig(type=kind, vocab_size=330)
    assert train(phrases, config) == train(phrases, config)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_largest_and_smallest_vocabulary_are_named_and_true(phrases, kind):
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=9000 is too large") as caught:
        train(phrases, TokenizerConfig(type=kind, vocab_size=9000))
    largest = int(re.findall(r"at most (\d+)", str(caught.value))[0])
    assert Tokenizer(train(phrases, TokenizerConfig(type=kind, vocab_size=largest))).vocab_size == largest
    many_letters = Pairs([chr(0x4E00 + i) for i in range(200)], ["x"] * 200)
    with pytest.raises(UserError, match=r"too small for this corpus: at least 46\d pieces"):
        train(many_letters, TokenizerConfig(type=kind, vocab_size=300))
