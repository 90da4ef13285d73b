import collections
import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest

from data.batches.stream import prefetch, validation_batches
from data.batches.windows import Windows, permutation, random_bits
from data.config import DataConfig
from data.pairs import Pairs
from tests.data.batches.test_epochs import sentences
from tests.prepared import stream_of

CONFIG = DataConfig(row_length=48, batch_rows=4, window=50)
SAMPLED = replace(CONFIG, subword_sampling=0.2)
NOISY = replace(SAMPLED, noise=0.3)
WEIGHTS = np.repeat([1, 0.5, 2], 80)  # of the 240 phrases, as if they came from three sources


def equal(some, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(some, other, strict=True))


def test_random_bits_are_philox_as_published():
    """Philox4x64-10 of counter (1, 0, 0, 0) and zero key, from NumPy's first draw; pinned for ever."""
    assert random_bits(2, 0, 0, 0).tolist() == np.random.Philox(key=0, counter=0).random_raw(2).tolist()
    draws = [tuple(random_bits(3, *key)) for key in itertools.product(range(2), range(2), range(2), range(2))]
    assert len(set(draws)) == 16
    assert sorted(permutation(100, 1, 2, 3)) == list(range(100))


@pytest.mark.parametrize(("config", "weights"), [(CONFIG, None), (SAMPLED, None), (CONFIG, WEIGHTS), (NOISY, None)])
def test_a_batch_depends_on_its_step_alone(phrases, phrase_tokenizer, config, weights):
    stream = stream_of(phrases, phrase_tokenizer, config, 3, weights)
    steps = stream.steps_in(0) + stream.steps_in(1) + 3
    batches = [stream.batch(step) for step in range(steps)]
    assert not equal(batches[0], batches[1])
    order = np.random.default_rng(0).permutation(steps)
    assert all(equal(stream.batch(int(step)), batches[step]) for step in order)
    assert equal(stream_of(phrases, phrase_tokenizer, config, 3, weights).batch(steps - 1), batches[-1])


def test_row_counts_spare_the_packing_of_earlier_epochs(phrases, phrase_tokenizer, monkeypatch):
    stream = stream_of(phrases, phrase_tokenizer, CONFIG, 3)
    last = stream.steps_in(0) + stream.steps_in(1) - 1
    expected, fresh = stream.batch(last), stream_of(phrases, phrase_tokenizer, CONFIG, 3)
    fresh.windows.row_counts = dict(stream.windows.row_counts)
    packed, pack = [], Windows._pack

    def counted(self, epoch, window):
        packed.append(epoch)
        return pack(self, epoch, window)

    monkeypatch.setattr(Windows, "_pack", counted)
    assert equal(fresh.batch(last), expected)
    assert set(packed) == {1}
    assert len(packed) <= 2


def test_fingerprint_changes_with_what_batches_depend_on(phrases, phrase_tokenizer):
    base = stream_of(phrases, phrase_tokenizer, CONFIG, 3).fingerprint
    changed = [
        stream_of(phrases, phrase_tokenizer, CONFIG, 4),
        stream_of(phrases, phrase_tokenizer, replace(CONFIG, window=51), 3),
        stream_of(phrases, phrase_tokenizer, SAMPLED, 3),
        stream_of(phrases, phrase_tokenizer, NOISY, 3),
        stream_of(Pairs(phrases.targets, phrases.sources), phrase_tokenizer, CONFIG, 3),
    ]
    assert len({base, *(stream.fingerprint for stream in changed)}) == 6
    assert stream_of(phrases, phrase_tokenizer, replace(CONFIG, prefetch=3, root="x"), 3).fingerprint == base


@pytest.mark.slow
def test_rows_are_full_on_both_sides(real_training, real_tokenizer):
    some = real_training.take(range(8_000))
    for alpha in (0.0, 0.1, 0.5):
        stream = stream_of(some, real_tokenizer, DataConfig(subword_sampling=alpha), seed=0)
        assert min(stream.fill()) > 0.95


@pytest.mark.parametrize("config", [CONFIG, SAMPLED], ids=["plain", "sampled"])
def test_the_rows_of_all_processes_are_the_batch(phrases, phrase_tokenizer, config):
    """Over windows and the ends of epochs, where some processes have nothing but padding."""
    whole = stream_of(phrases, phrase_tokenizer, config, seed=3)
    steps = whole.steps_in(0) + 2
    for processes in (2, 4):
        rows = config.batch_rows // processes
        streams = [stream_of(phrases, phrase_tokenizer, config, seed=3) for _ in range(processes)]
        for step in range(steps):
            parts = [stream.batch(step, slice(i * rows, (i + 1) * rows)) for i, stream in enumerate(streams)]
            assert equal([np.concatenate(arrays) for arrays in zip(*parts, strict=True)], whole.batch(step))
    last = stream_of(phrases, phrase_tokenizer, replace(config, batch_rows=240), seed=3).batch(0, slice(239, 240))
    assert not any(array.any() for array in last) and {array.shape[0] for array in last} == {1}
    assert whole.batch(5, slice(2, 2)).source_tokens.shape == (0, whole.row_lengths[0])


def test_prefetched_batches_are_the_batches(phrases, phrase_tokenizer):
    stream = stream_of(phrases, phrase_tokenizer, SAMPLED, seed=3)
    for rows, last in ((slice(None), 40), (slice(1, 3), 9)):
        other = stream_of(phrases, phrase_tokenizer, SAMPLED, seed=3)
        batches = prefetch(other, 5, 3, rows, lambda step, batch: (step, batch))
        for step in range(5, last):
            number, batch = next(batches)
            assert number == step and equal(batch, stream.batch(step, rows))
        batches.close()
    assert not any(thread.name.startswith("prefetch") for thread in threading.enumerate())


def test_prefetch_raises_the_threads_error(phrases, phrase_tokenizer, monkeypatch):
    stream = stream_of(phrases, phrase_tokenizer, CONFIG, seed=3)
    batch = stream.batch
    monkeypatch.setattr(stream, "batch", lambda step, rows: batch(step, rows) if step < 2 else 1 // 0)
    batches = prefetch(stream, 0, 1, slice(None), lambda step, batch: batch)
    assert equal(next(batches), batch(0))
    assert equal(next(batches), batch(1))
    with pytest.raises(ZeroDivisionError):
        next(batches)


def test_no_held_out_pair_is_dropped(phrases, phrase_tokenizer):
    held_out = Pairs([*phrases.sources, "", "y" * 130], [*phrases.targets, "vacío", ""])
    batches = validation_batches(held_out, phrase_tokenizer, CONFIG, (48, 44))
    assert {batch.source_tokens.shape for batch in batches} == {(4, 144)}  # 130 bytes and EOS: 3 × 48
    assert {batch.target_labels.shape for batch in batches} == {(4, 44)}
    found = [pair for batch in batches for pair in sentences(batch, phrase_tokenizer)]
    assert collections.Counter(found) == collections.Counter(zip(held_out.sources, held_out.targets, strict=True))
