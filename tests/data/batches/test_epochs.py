"""Every pair comes once an epoch, whatever the sentences, the seed and the shapes: read back out of the packed rows."""

import collections
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from common.errors import UserError
from common.special_tokens import BOS, EOS, PAD
from data.batches.packing import Batch
from data.batches.stream import BatchStream
from data.config import DataConfig
from data.pairs import Pairs, normalise
from tests.prepared import stream_of

EPOCHS = 3
WORDS = st.sampled_from(["Tom", "sees", "a", "house", "casa", "ñandú", "漢", "😀", "▁", "<s>", "\u0301x", "\x07"])
SENTENCE = st.lists(WORDS, max_size=25).map(" ".join).map(normalise)
PAIR = st.tuples(SENTENCE, SENTENCE)
# Some pairs several times: duplicates are pairs of their own.
PAIRS = st.lists(PAIR, min_size=1, max_size=12).flatmap(
    lambda few: st.lists(st.sampled_from(few), max_size=30).map(lambda again: [*few, *again])
)
WEIGHTS = st.one_of(st.none(), st.lists(st.sampled_from([0.1, 0.5, 1.0, 1.7, 3.0]), min_size=42, max_size=42))


def segments(tokens: np.ndarray, numbers: np.ndarray, positions: np.ndarray) -> Iterator[list[int]]:
    """The sentences of a row, in the order of their numbers; what has no number is padding and empty."""
    assert not tokens[numbers == 0].any() and not positions[numbers == 0].any()
    for number in range(1, int(numbers.max()) + 1):
        inside = numbers == number
        assert positions[inside].tolist() == list(range(inside.sum()))
        yield tokens[inside].tolist()


def sentences(batch: Batch, tokenizer) -> Iterator[tuple[str, str]]:
    """The pairs of a batch. What the decoder reads is what it predicts, one place later and behind BOS."""
    for row in range(len(batch.source_tokens)):
        source_tokens, source_segments, source_positions, inputs, labels, target_segments, target_positions = (
            array[row] for array in batch
        )
        sources = segments(source_tokens, source_segments, source_positions)
        targets = segments(labels, target_segments, target_positions)
        reads = segments(inputs, target_segments, target_positions)
        for source, target, read in zip(sources, targets, reads, strict=True):
            assert source[-1] == target[-1] == EOS and [*read, EOS] == [BOS, *target]
            assert PAD not in source + target and source.count(EOS) == target.count(EOS) == 1
            yield tokenizer.decode([source])[0], tokenizer.decode([target])[0]


def epochs(stream: BatchStream, tokenizer) -> list[list[tuple[str, str]]]:
    step, found = 0, []
    for epoch in range(EPOCHS):
        batches = [stream.batch(step + i) for i in range(stream.steps_in(epoch))]
        assert all(array.shape[0] == stream.config.batch_rows for batch in batches for array in batch)
        found.append([pair for batch in batches for pair in sentences(batch, tokenizer)])
        step += len(batches)
    return found


@pytest.mark.slow
@settings(max_examples=60)
@given(
    rows=PAIRS,
    seed=st.integers(0, 2**63),
    row_length=st.integers(8, 90),
    batch_rows=st.integers(1, 5),
    window=st.one_of(st.integers(1, 6), st.integers(1, 50)),
    weights=WEIGHTS,
    alpha=st.sampled_from([0.0, 0.0, 0.2]),
    both=st.booleans(),
)
@example([("a", "a")] * 3, 0, 8, 2, 2, None, 0.0, False)
@example([("a", "casa"), ("a", "casa"), ("Tom sees", "x")], 1, 30, 1, 2, [0.5] * 42, 0.2, True)
def test_every_kept_pair_comes_once_an_epoch(
    phrase_tokenizer, tagged_tokenizer, rows, seed, row_length, batch_rows, window, weights, alpha, both
):
    tokenizer, direction = (tagged_tokenizer, "both") if both else (phrase_tokenizer, "one")
    config = DataConfig(
        row_length=row_length, batch_rows=batch_rows, window=window, subword_sampling=alpha, direction=direction
    )
    pairs = Pairs([source for source, _ in rows], [target for _, target in rows])
    chosen = None if weights is None else np.array(weights[: len(rows)])
    try:
        stream = stream_of(pairs, tokenizer, config, seed, weights=chosen)
    except UserError:  # nothing fits a row, or the weights leave nothing
        assume(False)
    if both:
        rows, chosen = rows + [row[::-1] for row in rows], None if chosen is None else np.tile(chosen, 2)
    lengths = [[len(ids) + 1 for ids in tokenizer.encode(side)] for side in zip(*rows, strict=True)]
    lengths[0] = [length + both for length in lengths[0]]  # the tag
    fits = [all(np.array(pair) <= stream.row_lengths) for pair in zip(*lengths, strict=True)]
    assert (len(stream.encoded), stream.encoded.over_long) == (sum(fits), fits.count(False))
    kept = [row for row, fit in zip(rows, fits, strict=True) if fit]
    found = epochs(stream, tokenizer)
    assert list(map(len, found)) == [stream.windows.visits(epoch) for epoch in range(EPOCHS)]
    if chosen is None:
        assert all(collections.Counter(epoch) == collections.Counter(kept) for epoch in found)
        return
    visits = collections.Counter(pair for epoch in found for pair in epoch)
    assert visits.keys() <= set(kept)
    for pair in set(kept):  # each copy comes weight · epochs times, less than one off
        weight = sum(w for w, row, fit in zip(chosen, rows, fits, strict=True) if fit and row == pair)
        assert abs(visits[pair] - weight * EPOCHS) < kept.count(pair)
