"""A corpus takes no memory that grows with it but a few numbers for each pair."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What the process holds of its own, without what is mapped from files, looked at every few milliseconds: the kernel
# keeps no peak of it. The vocabulary is trained on few pairs, because SentencePiece keeps all that it trains on.
PROGRAM = """
import json, sys, threading, time
from pathlib import Path
import numpy as np
import data.tokens.tokenizer
from data.config import DataConfig, TokenizerConfig
from tests.prepared import prepare_and_save

def anonymous():
    return 1024 * int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])

def watch():
    global peak
    while True:
        peak = max(peak, anonymous())
        time.sleep(0.003)

peak, data.tokens.tokenizer.MAX_TRAINING_PAIRS = 0, 5_000
threading.Thread(target=watch, daemon=True).start()
folder, found = Path(sys.argv[1]), []
(folder / "valid.tsv").write_text("y\\tz\\n")
(folder / "test.tsv").write_text("z\\ty\\n")
for pairs in map(int, sys.argv[2:]):
    with open(folder / "train.tsv", "w") as file:
        file.writelines(f"number {i} {i % 97}\\tel número {i}\\n" for i in range(pairs))
    config = DataConfig(root=str(folder), window=4096)
    start = time.monotonic()
    prepared = prepare_and_save(config, TokenizerConfig(vocab_size=300), 1, folder / str(pairs))
    seconds, start, real = time.monotonic() - start, time.process_time(), 0
    for step in range(200):
        batch = prepared.stream.batch(step)
        real += int(np.count_nonzero(batch.source_segments) + np.count_nonzero(batch.target_segments))
    assert len(prepared.stream.encoded) == pairs
    found.append({"peak": peak, "seconds": seconds, "tokens": real / (time.process_time() - start)})
    del prepared, batch
print(json.dumps(found))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory is a process's own")


def measured(folder: Path, *pairs: int) -> list[dict[str, float]]:
    """For synthetic corpora that grow: the peak of the process's own memory so far in bytes, the seconds to prepare the
    corpus, and the real tokens a second of its batches."""
    command = [sys.executable, "-c", PROGRAM, str(folder), *map(str, pairs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_pair_takes_a_few_numbers(tmp_path):
    """Lists of sentences took 1,600 bytes for each; an order, hashes and the sorting of them take a dozen numbers."""
    few, many = measured(tmp_path, 20_000, 120_000)
    assert many["peak"] - few["peak"] < 100 * 100_000


@pytest.mark.slow
def test_two_million_pairs_take_a_few_numbers_each(tmp_path):
    few, many = measured(tmp_path, 20_000, 2_000_000)
    assert many["peak"] - few["peak"] < 100 * 1_980_000
    print(few, many)
