"""What a run keeps of its training sentences: hashes of them, folded, and counts of their words.

Large corpora are divided among as many processes as there are processors. Each runs this module as a program: it reads
lines and writes arrays, and ends with its standard input, whatever becomes of the process that started it.
"""

import io
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from data.pairs import fold_all
from data.splits import Hashes, hash_folded, sorted_distinct
from data.store import Sentences, as_sentences, in_blocks
from data.word_counts import WordCounts

ROOT = Path(__file__).parents[1]
Worker = subprocess.Popen[bytes]
FEW = 200_000  # sentences for which another process takes longer to start than it saves


def summarise(sentences: Sequence[str]) -> tuple[Hashes, WordCounts]:
    """``hash_sentences`` and ``count_words`` of the sentences."""
    processes = min(os.cpu_count() or 1, len(sentences) // FEW)
    return summarise_here(sentences) if processes < 2 else summarise_apart(as_sentences(sentences), processes)


def summarise_here(sentences: Iterable[str]) -> tuple[Hashes, WordCounts]:
    """``summarise`` in this process, in memory that grows with the distinct sentences and words by a few bytes each."""
    digests, words = bytearray(), WordCounts.none()
    for block in in_blocks(sentences):
        folded = list(fold_all(block))
        digests += hash_folded(folded)
        words = words.add(Counter(chain.from_iterable(sentence.split() for sentence in folded)))
    return sorted_distinct(np.frombuffer(digests, dtype="<u8")), words


def summarise_apart(sentences: Sentences, processes: int) -> tuple[Hashes, WordCounts]:
    """``summarise`` in other processes, each of which gets a share."""
    bounds = np.linspace(0, len(sentences), processes + 1).astype(int).tolist()
    command = [sys.executable, "-m", "data.folding"]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) for _ in range(processes)
    ]

    def give(worker: Worker, bounds: tuple[int, int]) -> dict[str, np.ndarray]:
        output, _ = worker.communicate(sentences.text(*bounds))  # type: ignore[arg-type]  # any buffer will do
        with np.load(io.BytesIO(output), allow_pickle=False) as arrays:
            return dict(arrays)

    try:
        with ThreadPoolExecutor(processes) as threads:
            parts = list(threads.map(give, workers, pairwise(bounds)))
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    hashes, words = np.concatenate([part.pop("hashes") for part in parts]), WordCounts.none()
    for part in parts:
        words = words.merge(part["words"], part["counts"])
    return sorted_distinct(hashes), words


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, and kills it
    lines = (line.decode().removesuffix("\n") for line in sys.stdin.buffer)
    hashes, words = summarise_here(lines)
    output = io.BytesIO()
    np.savez(output, hashes=hashes, words=words.hashes, counts=words.counts)
    sys.stdout.buffer.write(output.getbuffer())


if __name__ == "__main__":
    main()
