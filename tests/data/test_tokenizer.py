import json
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from data.config import TokenizerConfig
from data.corpus import Pairs, load_split, normalise
from data.errors import UserError
from data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, load_tokenizer, train, train_or_load_tokenizer

CONFIG = TokenizerConfig(vocab_size=330)
ODD = [
    "",
    "▁",
    "a▁b ▁▁",
    "<s> </s> <unk> <pad> <0x41> <0x1F>",
    "漢字 😀 \u200b",
    "\ufeffx",
    "⁇ ▅ �",
    "\x01\x7f",
    "ﬁ ² Å",
]


def test_special_ids(toy_tokenizer):
    processor = toy_tokenizer._processor
    assert [processor.id_to_piece(i) for i in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    assert toy_tokenizer.vocab_size == 330


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_line_of_the_real_corpus_comes_back(corpus, real_tokenizer, split):
    pairs, _ = load_split(corpus, split)
    for side in (pairs.sources, pairs.targets):
        ids = real_tokenizer.encode(side)
        assert real_tokenizer.decode(ids) == side
        assert min(min(sentence) for sentence in ids) > EOS  # bytes spell what the vocabulary lacks, never UNK


def test_odd_text_comes_back(toy_tokenizer):
    odd = [normalise(text) for text in ODD]
    assert toy_tokenizer.decode(toy_tokenizer.encode(odd)) == odd
    assert toy_tokenizer.decode(toy_tokenizer.encode_sampled(odd, 0.2, 1)) == odd
    assert toy_tokenizer.encode([]) == toy_tokenizer.decode([]) == []


def test_special_symbols_spell_nothing(toy_tokenizer):
    ids = toy_tokenizer.encode(["Tom sees a house."])[0]
    assert toy_tokenizer.decode([[BOS, *ids, EOS, PAD, PAD]]) == ["Tom sees a house."]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_two_trainings_give_the_same_bytes_and_no_noise(toy, kind, capfd):
    config = TokenizerConfig(type=kind, vocab_size=330)
    assert train(toy, config) == train(toy, config)
    assert capfd.readouterr() == ("", "")


def test_training_text_with_the_meta_symbol(toy):
    marked = Pairs([s.replace("house", "h▁ouse") for s in toy.sources], toy.targets)
    tokenizer = Tokenizer(train(marked, CONFIG))
    assert tokenizer.decode(tokenizer.encode(marked.sources)) == marked.sources


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_largest_and_smallest_vocabulary_are_told_and_true(toy, kind):
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size=9000 is too large") as caught:
        train(toy, TokenizerConfig(type=kind, vocab_size=9000))
    largest = int(re.findall(r"at most (\d+)", str(caught.value))[0])
    assert Tokenizer(train(toy, TokenizerConfig(type=kind, vocab_size=largest))).vocab_size == largest
    many_letters = Pairs([chr(0x4E00 + i) for i in range(200)], ["x"] * 200)
    with pytest.raises(UserError, match=r"too small for this corpus: at least 46\d pieces"):
        train(many_letters, TokenizerConfig(type=kind, vocab_size=300))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampling_depends_on_its_arguments_alone(toy, kind):
    tokenizer = Tokenizer(train(toy, TokenizerConfig(type=kind, vocab_size=330)))
    first = tokenizer.encode_sampled(toy.sources, 0.2, seed=5)
    other = tokenizer.encode_sampled(toy.sources, 0.2, seed=6)
    assert first != other
    assert first != tokenizer.encode(toy.sources)
    assert tokenizer.decode(first) == tokenizer.decode(other) == toy.sources
    tokenizer._processor.encode("history", enable_sampling=True, alpha=0.1, nbest_size=-1)
    with ThreadPoolExecutor(max_workers=3) as pool:
        seeds = [5, 6, 5, 6, 5, 5, 6]
        drawn = list(pool.map(lambda seed: tokenizer.encode_sampled(toy.sources, 0.2, seed), seeds))
    assert drawn == [{5: first, 6: other}[seed] for seed in seeds]
    assert pickle.loads(pickle.dumps(tokenizer._processor)).encode(toy.sources) == tokenizer.encode(toy.sources)


def test_it_survives_a_pickle(toy, toy_tokenizer):
    copy = pickle.loads(pickle.dumps(toy_tokenizer))
    assert copy.encode(toy.targets) == toy_tokenizer.encode(toy.targets)
    assert (copy.model, copy.key) == (toy_tokenizer.model, toy_tokenizer.key)


def test_a_saved_tokenizer_is_reused_while_nothing_changed(tmp_path, toy, monkeypatch):
    tokenizer = train_or_load_tokenizer(tmp_path, toy, CONFIG)
    assert list(tmp_path.iterdir()) == []
    tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).model == tokenizer.model
    with monkeypatch.context() as patch:
        patch.setattr("data.tokenizer.train", lambda *_: pytest.fail("trained again"))
        assert train_or_load_tokenizer(tmp_path, toy, CONFIG).model == tokenizer.model
    assert train_or_load_tokenizer(tmp_path, toy, replace(CONFIG, vocab_size=331)).vocab_size == 331
    shorter = Pairs(toy.sources[:-1], toy.targets[:-1])
    assert train_or_load_tokenizer(tmp_path, shorter, CONFIG).key != tokenizer.key


def test_checkpoints_forbid_another_tokenizer(tmp_path, toy):
    train_or_load_tokenizer(tmp_path, toy, CONFIG).save(tmp_path)
    (tmp_path / "checkpoints/100").mkdir(parents=True)
    assert train_or_load_tokenizer(tmp_path, toy, CONFIG).vocab_size == 330
    with pytest.raises(UserError, match="has checkpoints of another tokenizer"):
        train_or_load_tokenizer(tmp_path, toy, replace(CONFIG, vocab_size=331))


def test_a_missing_or_damaged_tokenizer_is_named(tmp_path, toy, toy_tokenizer):
    with pytest.raises(UserError, match=r"has no tokenizer\.model"):
        load_tokenizer(tmp_path)
    toy_tokenizer.save(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(toy_tokenizer.model[:-10])
    with pytest.raises(UserError, match="damaged"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(toy_tokenizer.model)
    for broken in ("", "[]", json.dumps({"key": "x"})):
        (tmp_path / "tokenizer.json").write_text(broken)
        with pytest.raises(UserError, match="damaged"):
            load_tokenizer(tmp_path)
        assert train_or_load_tokenizer(tmp_path, toy, CONFIG).model == toy_tokenizer.model
