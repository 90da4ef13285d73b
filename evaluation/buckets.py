"""Group sentences by length into batches padded to a bucket: fewer shapes mean fewer programs to compile."""

from collections.abc import Iterator
from itertools import groupby

BUCKETS = (16, 32, 64, 128)  # source tokens with EOS; longer ones go to powers of two

SearchBatch = tuple[tuple[int, int], list[int]]  # its shape, and the indices of its sentences


def bucket_of(length: int) -> int:
    """The padded length of a source of ``length`` tokens."""
    return next((bucket for bucket in BUCKETS if length <= bucket), 1 << (length - 1).bit_length())


def batch_size(bucket: int, batch_sentences: int) -> int:
    """Number of sentences to search together; smaller for very long ones, to limit the memory that a batch needs."""
    return max(1, batch_sentences * BUCKETS[-1] // max(bucket, BUCKETS[-1]))


def group_by_bucket(
    lengths: list[int], batch_sentences: int, devices: int = 1, batches: int = 1
) -> Iterator[SearchBatch]:
    """Groups of sentence indices, longest first, each with its shape; empty sentences, of length 1, are left out.

    With several devices, a group has as many rows for each device as it would have on one device: ``batches`` batches,
    or fewer if the sentences are longer than 16 tokens.
    """
    order = sorted((index for index, length in enumerate(lengths) if length > 1), key=lambda index: -lengths[index])
    for bucket, group in groupby(order, key=lambda index: bucket_of(lengths[index])):
        several = max(1, min(batches, BUCKETS[-1] // bucket))
        indices, size = list(group), devices * batch_size(bucket, batch_sentences) * several
        yield from (((size, bucket), indices[start : start + size]) for start in range(0, len(indices), size))
