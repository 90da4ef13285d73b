"""transformers' log-probabilities beside ours of every kind of model, and what its classes cannot hold."""

import json
from dataclasses import replace

import numpy as np
import pytest

from common.special_tokens import BOS, EOS
from data.config import TokenizerConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train
from exports import transformers as exported
from exports.formats import find_obstacle
from model.config import DecodingConfig
from tests.drawn import drawn_params
from tests.exports import test_ctranslate2
from tests.exports.hostile import HOSTILE
from tests.exports.test_ctranslate2 import CHANGES, VOCABULARY, ours

BASE = replace(test_ctranslate2.BASE, d_model=24)
FIT = {name for name in CHANGES if not find_obstacle("hf", replace(BASE, **CHANGES[name]))}


def test_what_fits():
    assert {
        *("positions=sinusoidal", "positions=learned", "norm=pre", "norm=post", "two groups", "narrow values"),
        *("score=scaled_dot_product", "score=dot_product", "score=general"),
        *("activation=relu", "activation=gelu", "activation=silu", "activation=relu_squared"),
        *("key_value_heads=0", "key_value_heads=1", "value_dim=0"),
        *("gated=False", "query_key_norm=False", "head_gates=False", "value_residual=False", "encoder_width=0"),
    } == FIT


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"score": "additive"}, "transformers has no model.score=additive"),
        ({"gated": True}, "no encoder-decoder with model.gated=true"),
        ({"positions": "rotary"}, "no encoder-decoder with model.positions=rotary"),
        ({"positions": "learned", "norm": "post"}, "keeps no learned positions"),
        ({"head_dim": 7}, "leaves no room for 4 of width 7"),
        ({"num_heads": 5, "head_dim": 4, "value_dim": 5}, "leaves no room for 5 of width 5"),
    ],
)
def test_what_does_not_fit_is_refused(changes, reason):
    assert reason in exported.find_obstacle(replace(BASE, **changes))


def test_heads_of_zeros_fill_the_width():
    config = replace(BASE, num_heads=3, head_dim=5)  # 24 / 3 = 8
    assert exported.make_config(config, 40)["encoder_attention_heads"] == 3
    config = replace(BASE, num_heads=5, head_dim=4)  # 24 / 6 = 4: one more
    assert exported.make_config(config, 40)["encoder_attention_heads"] == 6


@pytest.mark.torch
@pytest.mark.parametrize("name", [*sorted(FIT), "five heads"])
def test_log_probabilities_are_ours(name, tmp_path):
    import torch
    from transformers import AutoModelForSeq2SeqLM

    config = replace(BASE, **(CHANGES | {"five heads": {"num_heads": 5, "head_dim": 4}})[name])
    params, rng = drawn_params(config, len(VOCABULARY)), np.random.default_rng(2)
    exported.save_model(tmp_path, config, DecodingConfig(), params, len(VOCABULARY), limit=20)
    source, target = (rng.integers(4, len(VOCABULARY), length).tolist() for length in (20, 45))
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    with torch.no_grad():
        found = model(input_ids=torch.tensor([[*source, EOS]]), decoder_input_ids=torch.tensor([[BOS, *target]]))
    log_probs = found.logits[0].log_softmax(-1).numpy()[np.arange(len(target) + 1), [*target, EOS]]
    tolerance = 5e-6 if config.final_norm else 2e-5  # 1e-5 in Marian's norms, where ours have 1e-6
    np.testing.assert_allclose(log_probs, ours(config, params, source, target), atol=tolerance)


@pytest.fixture(scope="module")
def mine():
    """A tokenizer with tags of made-up words."""
    pairs = Pairs([f"one {n} {chr(97 + n % 26)}" for n in range(200)], [f"uno {n}" for n in range(200)])
    return Tokenizer(train(pairs, TokenizerConfig(vocab_size=310), ("en", "es")))


def load_theirs(tokenizer, folder):
    """An AutoTokenizer made from the exported files."""
    from transformers import AutoTokenizer

    exported.save_tokenizer(folder, BASE, tokenizer, ("en", "es"))
    (folder / "config.json").write_text(json.dumps(exported.make_config(BASE, tokenizer.vocab_size)))
    return AutoTokenizer.from_pretrained(folder)


@pytest.mark.torch
def test_the_tokenizer_is_ours_but_for_two_kinds_of_strings(mine, tmp_path):
    theirs = load_theirs(mine, tmp_path)
    strings = [*HOSTILE, "palabra " * 120_000]
    differing = [
        text
        for text, tokens in zip(strings, mine.encode(strings), strict=True)
        if theirs(text)["input_ids"] != [*tokens, EOS]
    ]
    assert differing == [">>es<< Tom runs.", "a▁b ▁"]


@pytest.mark.torch
def test_tags_are_language_codes(mine, tmp_path):
    found = load_theirs(mine, tmp_path)(">>es<<one 7")["input_ids"]
    assert found == [*mine.tag("es"), *mine.encode(["one 7"])[0], EOS] and len(mine.tag("es")) == 1


@pytest.mark.torch
@pytest.mark.slow
def test_the_tokenizer_is_ours_on_the_whole_corpus(corpus_root, tmp_path):
    """To tokens and back to text, with a vocabulary of this corpus."""
    lines = [line for file in corpus_root.glob("*.tsv") for line in file.read_text(encoding="utf-8").splitlines()]
    sentences = list(dict.fromkeys(side for line in lines for side in line.split("\t")[:2]))
    mine = Tokenizer(train(Pairs(sentences[0::2], sentences[1::2]), TokenizerConfig(vocab_size=8000)))
    theirs = load_theirs(mine, tmp_path)
    encoded = theirs(sentences)["input_ids"]
    assert len(sentences) > 200_000 and encoded == [[*tokens, EOS] for tokens in mine.encode(sentences)]
    assert theirs.batch_decode(encoded, skip_special_tokens=True) == sentences
