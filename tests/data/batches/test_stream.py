import collections
import itertools
import json
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UserError
from common.special_tokens import EOS
from data.batches.stream import BatchStream, prefetch, validation_batches
from data.batches.windows import Windows, permutation, random_bits
from data.config import DataConfig
from data.pairs import Pairs
from data.sources.source import load_source

CONFIG = DataConfig(row_length=48, batch_rows=4, window=50)
SAMPLED = replace(CONFIG, subword_sampling=0.2)


def equal(some, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(some, other, strict=True))


def texts(batches, tokenizer) -> list[tuple[str, str]]:
    """The pairs of the batches, read back from the segments."""
    found = []
    for batch in batches:
        for row in range(len(batch.source_tokens)):
            assert batch.source_segments[row].max() == batch.target_segments[row].max()
            for segment in range(1, batch.source_segments[row].max() + 1):
                source = batch.source_tokens[row][batch.source_segments[row] == segment].tolist()
                target = batch.target_labels[row][batch.target_segments[row] == segment].tolist()
                assert source[-1] == target[-1] == EOS
                found.append((tokenizer.decode([source])[0], tokenizer.decode([target])[0]))
    return found


def test_random_bits_are_philox_as_published():
    """Philox4x64-10 of counter (1, 0, 0, 0) and zero key, from NumPy's first draw; pinned for ever."""
    assert random_bits(2, 0, 0, 0).tolist() == np.random.Philox(key=0, counter=0).random_raw(2).tolist()
    draws = [tuple(random_bits(3, *key)) for key in itertools.product(range(2), range(2), range(2), range(2))]
    assert len(set(draws)) == 16
    assert sorted(permutation(100, 1, 2, 3)) == list(range(100))


@pytest.mark.parametrize("config", [CONFIG, SAMPLED], ids=["plain", "sampled"])
def test_every_pair_comes_exactly_once_an_epoch(phrases, phrase_tokenizer, config):
    stream = BatchStream(phrases, phrase_tokenizer, config, seed=3)
    step, orders = 0, []
    for epoch in range(3):
        batches = [stream.batch(step + i) for i in range(stream.steps_in(epoch))]
        found = texts(batches, phrase_tokenizer)
        assert collections.Counter(found) == collections.Counter(zip(phrases.sources, phrases.targets, strict=True))
        assert {array.shape for batch in batches for array in batch} <= {(4, length) for length in stream.row_lengths}
        step += len(batches)
        orders.append(found)
    assert orders[0] != orders[1] != orders[2]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**63), st.integers(1, 9), st.integers(1, 300), st.integers(20, 90))
def test_an_epoch_is_whole_for_any_seed_and_shape(phrases, phrase_tokenizer, seed, batch_rows, window, row_length):
    config = DataConfig(row_length=row_length, batch_rows=batch_rows, window=window)
    stream = BatchStream(phrases, phrase_tokenizer, config, seed)
    batches = [stream.batch(step) for step in range(stream.steps_in(0))]
    assert sum(int((batch.source_tokens == EOS).sum()) for batch in batches) == stream.pairs
    assert stream.pairs + stream.over_long == 240
    assert all(batch.source_segments.any() for batch in batches)
    full = [bool(row.any()) for batch in batches for row in batch.source_segments]
    assert full == sorted(full, reverse=True)  # empty rows stand at the very end only


@pytest.mark.slow
@pytest.mark.parametrize("config", [CONFIG, SAMPLED], ids=["plain", "sampled"])
def test_a_batch_depends_on_its_step_alone(phrases, phrase_tokenizer, config, tmp_path):
    cache = tmp_path / "row_counts.json"
    stream = BatchStream(phrases, phrase_tokenizer, config, 3, cache)
    steps = stream.steps_in(0) + stream.steps_in(1) + 3
    batches = [stream.batch(step) for step in range(steps)]
    assert not equal(batches[0], batches[1])
    order = np.random.default_rng(0).permutation(steps)
    assert all(equal(stream.batch(int(step)), batches[step]) for step in order)
    saved = cache.read_text()
    wrong = json.loads(saved)
    wrong["rows"][0][2] += 1
    for content in (saved, saved[:30], "", "[]", "null", '{"rows": 3}', "\x00", json.dumps(wrong), None):
        cache.unlink(missing_ok=True) if content is None else cache.write_text(content)
        fresh = BatchStream(phrases, phrase_tokenizer, config, 3, cache)
        assert equal(fresh.batch(steps - 1), batches[-1])
        assert equal(BatchStream(phrases, phrase_tokenizer, config, 3).batch(steps - 2), batches[-2])


def test_the_cache_spares_the_packing_of_earlier_epochs(phrases, phrase_tokenizer, tmp_path, monkeypatch):
    stream = BatchStream(phrases, phrase_tokenizer, CONFIG, 3, tmp_path / "cache.json")
    last = stream.steps_in(0) + stream.steps_in(1) - 1
    expected = stream.batch(last)
    packed, pack = [], Windows._pack

    def counted(self, epoch, window):
        packed.append(epoch)
        return pack(self, epoch, window)

    monkeypatch.setattr(Windows, "_pack", counted)
    assert equal(BatchStream(phrases, phrase_tokenizer, CONFIG, 3, tmp_path / "cache.json").batch(last), expected)
    assert set(packed) == {1}
    assert len(packed) <= 2


def test_a_corrupt_cache_of_another_run_is_ignored(phrases, phrase_tokenizer, tmp_path):
    BatchStream(phrases, phrase_tokenizer, CONFIG, 3, tmp_path / "cache.json").batch(9)
    other = BatchStream(phrases, phrase_tokenizer, CONFIG, 4, tmp_path / "cache.json")
    assert not other.windows.row_counts
    assert equal(other.batch(30), BatchStream(phrases, phrase_tokenizer, CONFIG, 4).batch(30))


def test_epoch_boundaries(phrases, phrase_tokenizer):
    stream = BatchStream(phrases, phrase_tokenizer, CONFIG, seed=3)
    lengths = [stream.steps_in(epoch) for epoch in range(3)]
    expected = [(epoch, i) for epoch, steps in enumerate(lengths) for i in range(steps)]
    assert [stream.epoch_of(step) for step in range(sum(lengths))] == expected
    assert BatchStream(phrases, phrase_tokenizer, CONFIG, seed=3).epoch_of(sum(lengths)) == (3, 0)


def test_fingerprint_changes_with_what_batches_depend_on(phrases, phrase_tokenizer):
    base = BatchStream(phrases, phrase_tokenizer, CONFIG, 3).fingerprint
    changed = [
        BatchStream(phrases, phrase_tokenizer, CONFIG, 4),
        BatchStream(phrases, phrase_tokenizer, replace(CONFIG, window=51), 3),
        BatchStream(phrases, phrase_tokenizer, SAMPLED, 3),
        BatchStream(Pairs(phrases.targets, phrases.sources), phrase_tokenizer, CONFIG, 3),
    ]
    assert len({base, *(stream.fingerprint for stream in changed)}) == 5
    assert BatchStream(phrases, phrase_tokenizer, replace(CONFIG, prefetch=3, root="x"), 3).fingerprint == base


def test_over_long_pairs_are_dropped_and_counted(phrases, phrase_tokenizer):
    sources, targets = [*phrases.sources, "x" * 60, "x"], [*phrases.targets, "x", "x" * 60]
    stream = BatchStream(Pairs(sources, targets), phrase_tokenizer, CONFIG, seed=0)
    assert (stream.pairs, stream.over_long) == (240, 2)
    with pytest.raises(UserError, match=r"data\.row_length=48"):
        BatchStream(Pairs(["x" * 60], ["x" * 60]), phrase_tokenizer, CONFIG, seed=0)


def test_sampling_falls_back_where_it_would_not_fit(phrases, phrase_tokenizer):
    tight = max(len(ids) + 1 for ids in phrase_tokenizer.encode(phrases.sources))
    config = replace(SAMPLED, row_length=tight, subword_sampling=0.01)
    stream = BatchStream(phrases, phrase_tokenizer, config, seed=0)
    batches = [stream.batch(step) for step in range(stream.steps_in(0))]
    assert len(texts(batches, phrase_tokenizer)) == stream.pairs


@pytest.mark.slow
def test_sampled_rows_are_full_on_both_sides(real_training, real_tokenizer):
    some = Pairs(real_training.sources[:20_000], real_training.targets[:20_000])
    for alpha in (0.1, 0.5):
        stream = BatchStream(some, real_tokenizer, DataConfig(subword_sampling=alpha), seed=0)
        assert min(stream.fill()) > 0.95


@pytest.mark.parametrize("config", [CONFIG, SAMPLED], ids=["plain", "sampled"])
def test_the_rows_of_all_processes_are_the_batch(phrases, phrase_tokenizer, config):
    """Over windows and the ends of epochs, where some processes have nothing but padding."""
    whole = BatchStream(phrases, phrase_tokenizer, config, seed=3)
    steps = whole.steps_in(0) + 2
    for processes in (2, 4):
        rows = config.batch_rows // processes
        streams = [BatchStream(phrases, phrase_tokenizer, config, seed=3) for _ in range(processes)]
        for step in range(steps):
            parts = [stream.batch(step, slice(i * rows, (i + 1) * rows)) for i, stream in enumerate(streams)]
            assert equal([np.concatenate(arrays) for arrays in zip(*parts, strict=True)], whole.batch(step))
    last = BatchStream(phrases, phrase_tokenizer, replace(config, batch_rows=240), seed=3).batch(0, slice(239, 240))
    assert not any(array.any() for array in last) and {array.shape[0] for array in last} == {1}
    assert whole.batch(5, slice(2, 2)).source_tokens.shape == (0, whole.row_lengths[0])


class Counted(np.ndarray):
    """Remembers how many of its entries were read."""

    read = 0

    def __getitem__(self, index):
        Counted.read += np.size(index)
        return np.asarray(super().__getitem__(index))


def test_a_process_reads_the_tokens_of_its_rows_alone(phrases, phrase_tokenizer):
    stream = BatchStream(phrases, phrase_tokenizer, CONFIG, seed=3)
    sources = stream.encoded.sources
    counted = replace(stream.encoded, sources=sources._replace(flat=sources.flat.view(Counted)))
    stream.windows.pairs = counted
    for step in range(stream.steps_in(0)):
        Counted.read = 0
        batch = stream.batch(step, slice(1, 3))
        assert Counted.read == np.count_nonzero(batch.source_segments)


def test_prefetched_batches_are_the_batches(phrases, phrase_tokenizer):
    stream = BatchStream(phrases, phrase_tokenizer, SAMPLED, seed=3)
    for rows, last in ((slice(None), 40), (slice(1, 3), 9)):
        other = BatchStream(phrases, phrase_tokenizer, SAMPLED, seed=3)
        batches = prefetch(other, 5, 3, rows, lambda step, batch: (step, batch))
        for step in range(5, last):
            number, batch = next(batches)
            assert number == step and equal(batch, stream.batch(step, rows))
        batches.close()
    assert not any(thread.name.startswith("prefetch") for thread in threading.enumerate())


def test_prefetch_raises_the_threads_error(phrases, phrase_tokenizer, monkeypatch):
    stream = BatchStream(phrases, phrase_tokenizer, CONFIG, seed=3)
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
    found = texts(batches, phrase_tokenizer)
    assert collections.Counter(found) == collections.Counter(zip(held_out.sources, held_out.targets, strict=True))


def test_the_real_held_out_sets_are_whole(corpus, real_tokenizer):
    for split, rows in (("valid", 2_468), ("test", 2_417)):
        batches = validation_batches(load_source(corpus, f"{split}.tsv", split)[0], real_tokenizer, corpus, (64, 64))
        assert sum(int((batch.target_labels == EOS).sum()) for batch in batches) == rows
