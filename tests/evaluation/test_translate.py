"""Buckets, order, and that a sentence's translation depends on the sentence alone."""

import itertools

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.translate import batches, bucket_of, rows_of, search_batch

SENTENCES = [
    "Tom eats.",
    "",
    "Ana runs there and there and there.",
    "   ",
    "Tom",
    "Ana eats here, Tom eats there, Ana runs.",
    "Tom  runs\there.",
    "Ana",
    "Tom runs here.",
]


def test_buckets_by_hand():
    lengths = [2, 8, 9, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 256, 257, 100_000]
    expected = [8, 8, 16, 16, 24, 32, 48, 64, 96, 96, 128, 128, 256, 256, 512, 131_072]
    assert list(map(bucket_of, lengths)) == expected


def test_long_buckets_hold_fewer_rows():
    assert [rows_of(bucket, 64) for bucket in (8, 128, 256, 4096, 131_072)] == [64, 64, 32, 2, 1]
    assert rows_of(256, 1) == 1


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(1, 9))
def test_every_sentence_that_is_not_empty_is_in_exactly_one_batch(lengths, batch_sentences):
    found = list(batches(lengths, batch_sentences))
    together = list(itertools.chain.from_iterable(indices for _, indices in found))
    assert sorted(together) == [index for index, length in enumerate(lengths) if length > 1]
    for bucket, indices in found:
        assert 1 <= len(indices) <= rows_of(bucket, batch_sentences)
        assert {bucket_of(lengths[index]) for index in indices} == {bucket}


@pytest.fixture(scope="module")
def translations(translator, params):
    return translator.translate(params, SENTENCES)


def test_empty_sentences_give_empty_translations_and_nothing_else_does(translations):
    assert [not text for text in translations] == [not sentence.strip() for sentence in SENTENCES]


def test_order_is_kept(translator, params, translations):
    assert translator.translate(params, SENTENCES[::-1]) == translations[::-1]


def test_company_does_not_matter(translator, params, translations):
    assert [translator.translate(params, [sentence])[0] for sentence in SENTENCES] == translations


def test_white_space_does_not_matter(translator, params, translations):
    assert translations[6] == translations[8]


def test_translations_are_single_lines_of_normalised_text(translator):
    line_feed = [4 + ord("\n")]  # byte pieces follow the four special ones
    spelled = translator.spell([[*translator.tokenizer.encode(["Tom"])[0], *line_feed, *line_feed]])
    assert translator.tokenizer.decode([line_feed]) == ["\n"]
    assert spelled == ["Tom"]


def test_limits_count_the_sources_tokens(translator, params):
    """max_length_factor 1 and max_length_extra 2, EOS counted on both sides."""
    sources = translator.tokenizer.encode(["Tom eats here.", "Ana", "Tom runs there. " * 30])
    found = translator.search(params, sources)
    for source, target in zip(sources, found, strict=True):
        assert 0 < len(target) <= len(source) + 1 + 2


def test_new_parameters_compile_nothing_new(translator, params):
    compiled = search_batch._cache_size()  # type: ignore[attr-defined]
    translator.translate(jax.tree.map(lambda leaf: leaf * 0.5, params), SENTENCES)
    assert search_batch._cache_size() == compiled  # type: ignore[attr-defined]


def test_no_sentences_give_no_translations(translator, params):
    assert translator.translate(params, []) == []
