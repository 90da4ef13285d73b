"""Subword sampling: what is drawn, with which probability, and that nothing but the arguments decides it."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from common.special_tokens import EOS
from data.config import DataConfig
from data.tokens import subword_sampling as segmentations
from data.tokens.subword_sampling import Segmentations, draw_candidates
from tests.prepared import stream_of
from tests.processes import printed_by
from training.run.corpus import save_tokenizer


def sentences_of(table):
    """The ids of each sentence, of which each must end with EOS."""
    places = zip(table.start, table.length, strict=True)
    sentences = [table.flat[start : start + length].tolist() for start, length in places]
    assert all(sentence.pop() == EOS for sentence in sentences)
    return sentences


def drawn(tokenizer, sentences, alpha, seed):
    return sentences_of(Segmentations(tokenizer, sentences).draw(np.arange(len(sentences)), alpha, seed))


def test_sampling_depends_on_its_arguments_alone(phrases, phrase_tokenizer):
    first = drawn(phrase_tokenizer, phrases.sources, 0.2, seed=5)
    other = drawn(phrase_tokenizer, phrases.sources, 0.2, seed=6)
    assert first != other
    assert first != phrase_tokenizer.encode(phrases.sources)
    assert phrase_tokenizer.decode(first) == phrase_tokenizer.decode(other) == phrases.sources
    with ThreadPoolExecutor(max_workers=3) as pool:
        together = list(pool.map(lambda seed: drawn(phrase_tokenizer, phrases.sources, 0.2, seed), [5, 6, 5]))
    assert together == [first, other, first]


def test_what_was_found_before_and_how_it_was_cut_up_changes_nothing(phrases, phrase_tokenizer, monkeypatch):
    """Bit for bit: a run that goes on finds segmentations at other times than one that was never interrupted."""
    count = len(phrases)
    orders = np.random.default_rng(0).integers(0, count, (6, count))  # some sentences twice, some not at all
    fresh = [sentences_of(Segmentations(phrase_tokenizer, phrases.targets).draw(order, 0.2, 9)) for order in orders]
    monkeypatch.setattr(segmentations, "BLOCK", 7)
    monkeypatch.setattr("data.tokens.tokenizer.BLOCK", 3)
    cached = Segmentations(phrase_tokenizer, phrases.targets)
    assert [sentences_of(cached.draw(order, 0.2, 9)) for order in orders] == fresh
    whole = Segmentations(phrase_tokenizer, phrases.targets)
    for each in (cached, whole):
        each.draw(np.arange(count), 0.2, 0)
    candidates = [
        [each.log_prob.view()[each.first[i] : each.first[i] + each.count[i]].tolist() for i in range(count)]
        for each in (cached, whole)
    ]
    assert candidates[0] == candidates[1]


def test_sampling_is_the_same_in_another_process(tmp_path, phrases, phrase_tokenizer):
    # SentencePiece's own sampler is not, whatever its seed: resuming with it would change the batches.
    save_tokenizer(tmp_path, phrase_tokenizer)
    code = (
        "import sys, pathlib, hashlib, numpy; from training.run.corpus import load_tokenizer;"
        "from data.tokens.subword_sampling import Segmentations;"
        "cached = Segmentations(load_tokenizer(pathlib.Path(sys.argv[1])), sys.argv[2:]);"
        "table = cached.draw(numpy.arange(len(sys.argv) - 2), 0.2, 5).compact();"
        "print(hashlib.sha256(table.flat.tobytes()).hexdigest())"
    )
    [elsewhere] = printed_by(code, tmp_path, *phrases.sources)
    here = [id for ids in drawn(phrase_tokenizer, phrases.sources, 0.2, 5) for id in [*ids, EOS]]
    assert elsewhere == hashlib.sha256(np.array(here, np.int32).tobytes()).hexdigest()


def test_sampling_follows_the_probabilities(phrase_tokenizer):
    sentence, draws, alpha = "remembers", 20_000, 0.3
    candidates = phrase_tokenizer._processor.nbest_encode(sentence, nbest_size=16)
    scores = [sum(phrase_tokenizer._processor.get_score(piece) for piece in ids) for ids in candidates]
    expected = np.exp(alpha * np.array(scores))
    expected /= expected.sum()
    table = Segmentations(phrase_tokenizer, [sentence]).draw(np.zeros(draws, np.int64), alpha, seed=3)
    found = sentences_of(table)
    shares = np.array([found.count(ids) for ids in candidates]) / draws
    assert len(candidates) > 4
    np.testing.assert_allclose(shares, expected, atol=4 * np.sqrt(0.25 / draws))


def test_empty_sentences_and_none_at_all(phrase_tokenizer):
    assert drawn(phrase_tokenizer, ["", "a", ""], 0.2, 1)[::2] == [[], []]
    nothing = Segmentations(phrase_tokenizer, ["a"]).draw(np.zeros(0, np.int64), 0.2, 1)
    assert len(nothing.start) == len(nothing.length) == 0


def test_a_corpus_too_large_to_cache_gives_the_same_batches(phrases, phrase_tokenizer, monkeypatch):
    config = DataConfig(subword_sampling=0.2, batch_rows=4, window=50)
    cached = stream_of(phrases, phrase_tokenizer, config, seed=2)
    monkeypatch.setattr("data.batches.windows.MAX_CACHED_PAIRS", 10)
    uncached = stream_of(phrases, phrase_tokenizer, config, seed=2)
    for step in range(cached.steps_in(0) + cached.steps_in(1)):
        for mine, theirs in zip(cached.batch(step), uncached.batch(step), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_the_draw_by_hand():
    # Two sentences with 2 and 3 candidates; weights 1, 1/2 and 1, 1, 1/4 at alpha 1.
    log_probs = np.log([1, 0.5, 0.5, 0.5, 0.125])
    draws = ((0.0, 0.0), [0, 2]), ((0.66, 0.45), [0, 3]), ((0.67, 0.9), [1, 4]), ((0.999, 0.999), [1, 4])
    for uniform, chosen in draws:
        np.testing.assert_array_equal(draw_candidates(log_probs, np.array([2, 3]), 1.0, np.array(uniform)), chosen)
