"""Buckets, order, pieces, and that a sentence's translation depends on the sentence alone."""

import dataclasses
import itertools
import math
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.long_lines import Usual, has_fewer_sentences
from evaluation.buckets import batch_size, bucket_of, group_by_bucket
from evaluation.minimum_risk import expected_utilities
from evaluation.n_best import distinct, n_best
from evaluation.search import search_batch
from evaluation.translate import Translator
from tests.drawn import drawn_params, make_ending

SENTENCES = ["Tom eats.", "", "Ana runs.", "   ", "Tom", "Ana eats here", "Tom  runs\there.", "Ana", "Tom runs here."]
WORDS = ["Tom", "Ana", "eats", "runs", "here", "there", "aeo", "nor", "ste"]


def with_settings(translator: Translator, **changes) -> Translator:
    return replace(translator, decoding=replace(translator.decoding, **changes))


def test_buckets_by_hand():
    lengths = [2, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 100_000]
    expected = [16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 512, 131_072]
    assert list(map(bucket_of, lengths)) == expected
    assert [batch_size(bucket, 64) for bucket in (16, 128, 256, 4096, 131_072)] == [64, 64, 32, 2, 1]
    assert batch_size(256, 1) == 1


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(1, 9), st.sampled_from([1, 8]))
def test_every_sentence_that_is_not_empty_is_in_exactly_one_batch(lengths, batch_sentences, batches):
    found = list(group_by_bucket(lengths, batch_sentences, batches=batches))
    together = list(itertools.chain.from_iterable(indices for _, indices in found))
    assert sorted(together) == [index for index, length in enumerate(lengths) if length > 1]
    for (size, bucket), indices in found:
        several = min(batches, 128 // bucket) or 1
        assert 1 <= len(indices) <= size == several * batch_size(bucket, batch_sentences)
        assert {bucket_of(lengths[index]) for index in indices} == {bucket}


@pytest.fixture(scope="module")
def translations(translator, params):
    return translator.translate(params, SENTENCES)


def test_each_sentence_has_its_translation(translator, params, translations):
    """In its place; an empty one has an empty translation, and other white space does not matter."""
    assert [not each.text for each in translations] == [not sentence.strip() for sentence in SENTENCES]
    assert dataclasses.astuple(translations[1]) == ("", [], [], 0.0, 0.0, True, [])
    assert translations[6] == translations[8]
    assert translator.translate(params, SENTENCES[::-1]) == translations[::-1]
    assert translator.translate(params, []) == []


@pytest.mark.parametrize("settings", [{}, pytest.param({"search": "sample"}, marks=pytest.mark.slow)], ids=str)
def test_company_and_threads_change_nothing(translator, params, settings, monkeypatch):
    """Sentences of mixed lengths, shuffled, by ones, sevens and all at once: the same bits of text and score."""
    translator = with_settings(translator, **settings)
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(WORDS, random.integers(1, 4))) for _ in range(40)]
    order = random.permutation(len(lines))
    shuffled = [lines[place] for place in order]
    together = translator.translate(params, lines)
    assert len({each.text for each in together}) > 10
    for size, threads in ((1, 1), (7, 4), (64, 4)):
        monkeypatch.setattr("evaluation.side_by_side.workers", lambda threads=threads: threads)
        pieces = [shuffled[start : start + size] for start in range(0, len(lines), size)]
        apart = [each for piece in pieces for each in translator.translate(params, piece)]
        assert [apart[place] for place in np.argsort(order)] == together


def test_translations_are_single_lines_of_normalised_text(translator):
    line_feed = [4 + ord("\n")]  # byte pieces follow the four special ones
    spelled = translator.spell([[*translator.tokenizer.encode(["Tom"])[0], *line_feed, *line_feed]])
    assert translator.tokenizer.decode([line_feed]) == ["\n"]
    assert spelled == ["Tom"]


def test_limits_count_the_sources_tokens(translator, params):
    """max_length_factor 1 and max_length_extra 2, EOS counted on both sides."""
    sources = translator.tokenizer.encode(["Tom eats here.", "Ana", "Ana runs there."])
    for source, (found,) in zip(sources, translator.search(params, sources, 1), strict=True):
        assert 0 < len(found.tokens) <= len(source) + 1 + 2
        assert found.ended or len(found.tokens) == len(source) + 1 + 2


def test_each_bucket_is_compiled_once_whatever_the_parameters_and_lines(translator, params):
    translator = with_settings(translator, max_length_extra=3)
    compiled = search_batch._cache_size()  # type: ignore[attr-defined]
    lines = ["Tom eats.", "Tom eats there and Ana runs here.", "Ana runs."]
    lengths = [len(tokens) + 1 for tokens in translator.tokenizer.encode(lines)]
    for first, scale in enumerate((1.0, 0.5, 0.5)):
        translator.translate(jax.tree.map(lambda leaf, scale=scale: leaf * scale, params), lines[first:])
    assert search_batch._cache_size() - compiled == len(set(map(bucket_of, lengths))) == 2  # type: ignore[attr-defined]


def test_a_long_line_is_translated_in_pieces(translator, params):
    """Each sentence alone, its translation in its place; numbers are sums."""
    translator = with_settings(translator, max_source_tokens=18)
    first, second = "Tom eats here.", "Ana runs there."
    whole = translator.translate(params, [f"{first} {second}"])[0]
    apart = translator.translate(params, [first, second])
    assert translator.pieces(f"{first} {second}") == [first, second]
    assert whole.text == " ".join(each.text for each in apart)
    assert whole.targets == [each.targets[0] for each in apart]
    assert math.isclose(whole.log_prob, sum(each.log_prob for each in apart))
    assert translator.pieces(first) == [first]


@pytest.mark.slow
def test_the_n_best_of_pieces_are_their_best_combinations(translator, params):
    translator = with_settings(translator, max_source_tokens=16, beam_size=3)
    first, second = "Tom eats here.", "Ana runs there."
    of_first, of_second = translator.candidates(params, [first, second], 3)
    combined = translator.candidates(params, [f"{first} {second}"], 3)[0]
    scores = sorted((a.score + b.score for a in of_first for b in of_second), reverse=True)[:3]
    np.testing.assert_allclose([each.score for each in combined], scores)
    assert len({str(each.targets) for each in combined}) == 3


def test_a_line_that_loses_a_sentence_is_translated_sentence_by_sentence(translator, params):
    """Though training had such lines; what has as many sentences as the line, or is cut to a length, stays."""
    usual, line = replace(translator, usual=Usual(sentences=2, tokens=64)), "Tom eats here. Ana runs there."
    whole = with_settings(usual, max_source_tokens=64).translate(params, [line, "Tom"])
    assert has_fewer_sentences(whole[0].text, "es", line, "en") and len(whole[0].sources) == 1
    assert usual.translate(params, [line, "Tom"]) == [translator.translate(params, [line])[0], whole[1]]
    assert usual.pieces(line) == [line] != translator.pieces(line)
    assert not has_fewer_sentences("¿Sí? No.", "es", "Yes. No.", "en")
    tight = with_settings(usual, max_length_factor=1.0, max_length_extra=1)
    prefix = "Tom Ana Tom"  # too long for "Yes."
    assert tight.translate(params, ["Yes. No. Ana eats."], prefix=prefix)[0].text.startswith(prefix)


def test_the_n_best_differ_as_texts_and_are_n(translator):
    """Where the three best hypotheses spell fewer texts, those that follow; an empty line has one."""
    params, lines = drawn_params(translator.models[0], translator.tokenizer.vocab_size), ["Tom eats.", "Ana", "", "Tom"]
    make_ending(params, end=4.0, scale=10)
    translator = with_settings(translator, beam_size=4)
    many = translator.candidates([params], lines, 24)
    assert any(len(distinct(each[:3])) < 3 for each in many if len(each) > 1)
    candidates = partial(translator.candidates, [params])
    assert n_best(candidates, lines, 3) == [distinct(each)[:3] for each in many]
    assert [len(each) for each in n_best(candidates, lines, 3)] == [3, 3, 1, 3]


def test_minimum_risk_chooses_among_draws_that_depend_on_the_seed(translator, params):
    sampled = with_settings(translator, search="sample", candidates=6, mbr="chrf", temperature=0.5)
    lines = ["Tom eats here.", "Ana runs."]
    draws = [with_settings(sampled, seed=seed).candidates(params, lines, 6) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    for each, candidates in zip(sampled.translate(params, lines), draws[0], strict=True):
        utilities = expected_utilities([candidate.text for candidate in candidates], [1.0] * 6, "chrf")
        assert each == candidates[int(np.argmax(utilities))]


def test_minimum_risk_weighs_a_beams_hypotheses_by_their_probabilities(translator, params):
    by_risk = with_settings(translator, mbr="chrf", candidates=6, beam_size=6)
    lines = ["Tom eats here.", "Ana runs."]
    found = with_settings(translator, beam_size=6).candidates(params, lines, 6)
    for each, candidates in zip(by_risk.translate(params, lines), found, strict=True):
        weights = [math.exp(candidate.log_prob) for candidate in candidates]
        utilities = expected_utilities([candidate.text for candidate in candidates], weights, "chrf")
        assert each == candidates[int(np.argmax(utilities))]


def test_sources_end_where_training_ended_or_positions_do(translator):
    learned = replace(translator.models[0], positions="learned", max_positions=20)
    assert translator.longest == 64
    assert with_settings(translator, max_source_tokens=9).longest == 9
    assert replace(translator, models=(*translator.models, learned)).longest == 20


@pytest.mark.slow
def test_a_table_of_positions_may_be_shorter_than_a_padded_row(translator):
    """A source of 18 tokens, padded to 32, translates as with a longer table that begins with the same 20 rows."""
    line = "Tom eats here, Ana"
    assert len(translator.tokenizer.encode(line)) == 18 and bucket_of(18) == 32
    learned = (replace(translator.models[0], positions="learned", max_positions=size) for size in (20, 64))
    short, long = (replace(translator, models=(model,)) for model in learned)
    table = drawn_params(long.models[0], translator.tokenizer.vocab_size)
    cut = table | {"embedding": table["embedding"] | {"positions": table["embedding"]["positions"][:20]}}
    found = short.translate((cut,), [line])
    assert math.isfinite(found[0].log_prob) and found == long.translate((table,), [line])
