"""data.direction=both: every pair in both directions, and a tag before each source and nowhere else."""

import collections
from dataclasses import replace

import numpy as np
import pytest

from common.special_tokens import TAGS
from data.batches.stream import validation_batches
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train
from tests.data.batches.test_epochs import sentences
from tests.prepared import stream_of

BOTH = DataConfig(direction="both", batch_rows=4, window=100)
FORWARD, BACK = TAGS


def tagged_sentences(batch):
    """Tag, source and target of every pair, and whether any other token is a tag."""
    found, others = [], 0
    rows = batch.source_tokens, batch.source_segments, batch.target_labels, batch.target_segments
    for tokens, segments, labels, label_segments in zip(*rows, strict=True):
        for number in range(1, int(segments.max()) + 1):
            tag, *source = tokens[segments == number].tolist()
            target = labels[label_segments == number].tolist()
            others += sum(token in TAGS for token in source + target)
            found.append((tag, tuple(source), tuple(target)))
    assert not np.isin(batch.target_inputs, TAGS).any() and others == 0
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("weights", [None, 2.0])
def test_every_pair_comes_in_both_directions_each_with_its_tag(phrases, tagged_tokenizer, alpha, weights):
    config = replace(BOTH, subword_sampling=alpha)
    visits = None if weights is None else np.full(len(phrases), weights)
    stream = stream_of(phrases, tagged_tokenizer, config, seed=1, weights=visits)
    found = [pair for step in range(stream.steps_in(0)) for pair in tagged_sentences(stream.batch(step))]
    decode = tagged_tokenizer.decode
    texts = collections.Counter((tag, *decode([list(source), list(target)])) for tag, source, target in found)
    forward = zip(phrases.sources, phrases.targets, strict=True)
    back = zip(phrases.targets, phrases.sources, strict=True)
    expected = collections.Counter([(FORWARD, *pair) for pair in forward] + [(BACK, *pair) for pair in back])
    assert texts == collections.Counter({pair: count * int(weights or 1) for pair, count in expected.items()})


def test_directions_are_mixed_and_the_mixture_depends_on_the_seed_alone(phrases, tagged_tokenizer):
    streams = [stream_of(phrases, tagged_tokenizer, BOTH, seed) for seed in (1, 1, 2)]
    first, again, other = ([tag for tag, _, _ in tagged_sentences(stream.batch(3))] for stream in streams)
    assert first == again != other
    assert {FORWARD, BACK} == set(first)
    doubled = Pairs([*phrases.sources, *phrases.targets], [*phrases.targets, *phrases.sources])
    untagged = stream_of(doubled, tagged_tokenizer, replace(BOTH, direction="one"), 1)
    assert streams[0].fingerprint != untagged.fingerprint


def test_validation_has_every_pair_in_both_directions(phrases, tagged_tokenizer):
    held_out = phrases.take(range(20))
    batches = validation_batches(held_out, tagged_tokenizer, BOTH, (64, 64))
    pairs = [pair for batch in batches for pair in sentences(batch, tagged_tokenizer)]
    forward = list(zip(held_out.sources, held_out.targets, strict=True))
    assert collections.Counter(pairs) == collections.Counter([*forward, *(pair[::-1] for pair in forward)])
    tags = collections.Counter(tag for batch in batches for tag, _, _ in tagged_sentences(batch))
    assert tags == {FORWARD: 20, BACK: 20}


def test_tags_are_special_symbols_that_no_text_spells(tagged_tokenizer, phrase_tokenizer):
    assert (tagged_tokenizer.tag("es"), tagged_tokenizer.tag("en")) == ([FORWARD], [BACK])
    assert tagged_tokenizer.pieces(list(TAGS)) == ["<2es>", "<2en>"]
    for text in ("<2es>", "<2en> casa", "a <2es>b"):
        (ids,) = tagged_tokenizer.encode([text])
        assert not set(ids) & set(TAGS) and tagged_tokenizer.decode([ids]) == [text]
        assert not {id_ for found in tagged_tokenizer.segmentations([text])[0] for id_ in found} & set(TAGS)
    (ids,) = tagged_tokenizer.encode(["una casa"])
    assert tagged_tokenizer.decode([[FORWARD, *ids, BACK]]) == ["una casa"]
    assert tagged_tokenizer.tag("fr") == phrase_tokenizer.tag("es") == []


def test_a_corpus_that_spells_a_tag_does_not_give_it_to_a_vocabulary_of_one_direction(phrases):
    spelled = Pairs([f"<2es> {source}" for source in phrases.sources], phrases.targets)
    tokenizer = Tokenizer(train(spelled, TokenizerConfig(vocab_size=330)))
    assert tokenizer.tag("es") == []
