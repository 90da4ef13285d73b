"""Hashes of the folded training sentences, and counts of their words.

Large corpora are divided among as many processes as there are processors. Each runs this module as a program: it reads
lines and writes arrays, and ends with its standard input, whatever becomes of the process that started it.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from common.errors import UserError
from data.corpus.splits import Hashes, hash_folded, sorted_distinct
from data.corpus.word_counts import WordCounts
from data.pairs import fold_all
from data.sentences import Sentences, as_sentences, in_blocks, move_to_disk, scratch_folder

ROOT = Path(__file__).parents[2]
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
    """``summarise`` in other processes, each of which gets a share; UserError if one of them fails."""
    bounds = np.linspace(0, len(sentences), processes + 1).astype(int).tolist()
    with ThreadPoolExecutor(processes) as threads:
        parts = list(threads.map(lambda share: run_worker(sentences.text(*share)), pairwise(bounds)))
    words = WordCounts.none()
    for _, *found in parts:
        words = words.merge(*found)
    return sorted_distinct(np.concatenate([hashes for hashes, *_ in parts])), words


def run_worker(lines: memoryview) -> list[np.ndarray]:
    """The three arrays of a process that runs ``main`` on these lines; UserError if it fails."""
    command = [sys.executable, "-m", "data.corpus.summary"]
    with tempfile.TemporaryFile(dir=scratch_folder()) as output:
        done = subprocess.run(command, input=lines, stdout=output, stderr=subprocess.PIPE, cwd=ROOT)
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"signal {-done.returncode}"
            raise UserError(f"a process that counts words ended ({reason}): is {scratch_folder()} or memory full?")
        output.seek(0)
        return [np.load(output, allow_pickle=False) for _ in range(3)]


def main() -> None:
    """From lines of standard input to three arrays, one after another, on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, and kills it
    lines = (line.decode().removesuffix("\n") for line in sys.stdin.buffer)
    hashes, words = summarise_here(lines)
    for array in (hashes, words.hashes, words.counts):
        np.save(sys.stdout.buffer, array, allow_pickle=False)


if __name__ == "__main__":
    main()
