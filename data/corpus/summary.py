"""What a run keeps of its training sentences: hashes of them, folded, and counts of their words.

Large corpora are divided among as many processes as there are processors. Each runs this module as a program: it reads
lines and writes arrays, and ends with its standard input, whatever becomes of the process that started it.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import IO

import numpy as np

from common.errors import UserError
from data.corpus.splits import Hashes, hash_folded, sorted_distinct
from data.corpus.word_counts import WordCounts
from data.pairs import fold_all
from data.sentences import Sentences, as_sentences, in_blocks, move_to_disk, scratch_folder

ROOT = Path(__file__).parents[2]
Worker = subprocess.Popen[bytes]
FEW = 200_000  # sentences for which another process takes longer to start than it saves


def summarise(sentences: Sequence[str]) -> tuple[Hashes, WordCounts]:
    """``hash_sentences`` of the sentences, and how often they have each word, mapped."""
    processes = min(os.cpu_count() or 1, len(sentences) // FEW)
    if processes < 2:
        hashes, words = summarise_here(sentences)
    else:
        hashes, words = summarise_apart(as_sentences(sentences), processes)
    return move_to_disk(hashes), WordCounts(move_to_disk(words.hashes), move_to_disk(words.counts))


def summarise_here(sentences: Iterable[str]) -> tuple[Hashes, WordCounts]:
    """``summarise`` in this process, in memory that grows with the distinct sentences and words by a few bytes each."""
    digests, words = bytearray(), WordCounts.none()
    for block in in_blocks(sentences):
        folded = list(fold_all(block))
        digests += hash_folded(folded)
        words = words.add(Counter(chain.from_iterable(sentence.split() for sentence in folded)))
    return sorted_distinct(np.frombuffer(digests, dtype="<u8")), words


def summarise_apart(sentences: Sentences, processes: int) -> tuple[Hashes, WordCounts]:
    """``summarise`` in other processes, each of which gets a share; UserError if one of them does not end well."""
    bounds = np.linspace(0, len(sentences), processes + 1).astype(int).tolist()
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile(dir=scratch_folder())) for _ in range(processes)]
        workers = [stack.enter_context(start_worker(output)) for output in outputs]

        def give(worker: Worker, bounds: tuple[int, int]) -> None:
            _, told = worker.communicate(sentences.text(*bounds))  # type: ignore[arg-type]  # any buffer will do
            if worker.returncode:
                reason = told.decode(errors="replace").strip().rpartition("\n")[2] or f"signal {-worker.returncode}"
                raise UserError(f"a process that counts words ended ({reason}): is {scratch_folder()} or memory full?")

        with ThreadPoolExecutor(processes) as threads:
            list(threads.map(give, workers, pairwise(bounds)))
        for output in outputs:
            output.seek(0)
        hashes = sorted_distinct(np.concatenate([np.load(output, allow_pickle=False) for output in outputs]))
        words = WordCounts.none()
        for output in outputs:
            words = words.merge(*(np.load(output, allow_pickle=False) for _ in range(2)))
    return hashes, words


@contextmanager
def start_worker(output: IO[bytes]) -> Iterator[Worker]:
    """A process that runs ``main``, and has ended at the end."""
    command, pipe = [sys.executable, "-m", "data.corpus.summary"], subprocess.PIPE
    worker = subprocess.Popen(command, stdin=pipe, stdout=output, stderr=pipe, cwd=ROOT)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def main() -> None:
    """From lines of standard input to three arrays, one after another, on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, and kills it
    lines = (line.decode().removesuffix("\n") for line in sys.stdin.buffer)
    hashes, words = summarise_here(lines)
    for array in (hashes, words.hashes, words.counts):
        np.save(sys.stdout.buffer, array, allow_pickle=False)


if __name__ == "__main__":
    main()
