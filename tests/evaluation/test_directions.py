"""A translator of a model of both directions: the tag of its target language stands before every source."""

from dataclasses import replace

import pytest

from common.special_tokens import TAGS
from data.config import TokenizerConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train
from evaluation.attention_view.sentence import translate_and_attend
from evaluation.forced_scores import align, force, score_translations
from model.decoding.forced import token_log_probs
from tests.evaluation.conftest import SENTENCES

LINES = ["Tom eats.", "Ana runs.", ""]


@pytest.fixture(scope="module")
def translators(translator):
    """To Spanish and to English, by one vocabulary with tags."""
    tokenizer = Tokenizer(train(Pairs(SENTENCES, SENTENCES), TokenizerConfig(vocab_size=300), ["es", "en"]))
    return [replace(translator, tokenizer=tokenizer, target=target) for target in ("es", "en")]


def test_the_tag_of_the_target_language_is_all_that_makes_a_direction(translators, translator, params):
    """The search of tagged tokens gives each translator's translations, and the two differ."""
    there, back = (each.translate(params, LINES) for each in translators)
    assert [line.targets for line in there] != [line.targets for line in back]
    for each, found, tag in zip(translators, (there, back), TAGS, strict=True):
        tagged = [[tag, *tokens] for tokens in each.tokenizer.encode(LINES[:2])]
        assert each.encode_sources(LINES[:2]) == tagged == [line.sources[0] for line in found[:2]]
        searched = translators[0].search(params, tagged, 1)
        assert [line.targets[0] for line in found[:2]] == [hypotheses[0].tokens for hypotheses in searched]
    assert translator.encode_sources(["Tom"]) == translator.tokenizer.encode(["Tom"])


def test_scores_are_those_of_tagged_tokens(translators, params):
    """Forced decoding of tokens has no notion of a direction: the tag among them is all that it sees."""
    there, back = (score_translations(each, params, [("Tom eats.", "Ana runs.")])[0] for each in translators)
    source, target = translators[0].tokenizer.encode(["Tom eats.", "Ana runs."])
    for score, tag in zip((there, back), TAGS, strict=True):
        [(_, row)] = force(translators[0], params, [([tag, *source], target)], token_log_probs)
        assert score.log_prob == pytest.approx(float(row[: len(target) + 1].sum()), rel=1e-5)
    assert there.log_prob != pytest.approx(back.log_prob, rel=1e-4)


def test_a_tag_is_no_word(translators, params):
    (aligned,) = align(translators[0], params, translators[0].translate(params, LINES[:1]))
    assert aligned.source_words == ["Tom", "eats"]
    attended = translate_and_attend(translators[0], params[0], LINES[0])
    assert attended.labels.source_tokens[0] == "<2es>" and attended.sentence == LINES[0]


def test_the_tag_counts_where_lengths_are_limited(translators):
    (tokens,) = translators[0].tokenizer.encode(["Tom eats here."])
    decoding = replace(translators[0].decoding, max_source_tokens=len(tokens) + 2)
    assert replace(translators[0], decoding=decoding).pieces("Tom eats here.") == ["Tom eats here."]
    decoding = replace(decoding, max_source_tokens=len(tokens) + 1)
    assert len(replace(translators[0], decoding=decoding).pieces("Tom eats here.")) > 1
