"""A corpus takes no memory that grows with it but a few numbers for each pair."""

import json
import sys

import pytest

from tests.processes import run_code

# What the process holds of its own, without what is mapped from files, looked at every few milliseconds: the kernel
# keeps no peak of it. The vocabulary is trained on few pairs, because SentencePiece keeps all that it trains on.
PROGRAM = """
import json, sys, threading, time
from pathlib import Path
import data.tokens.tokenizer
from data.config import DataConfig, TokenizerConfig
from tests.prepared import prepare_and_save

def watch():
    global peak
    while True:
        peak = max(peak, 1024 * int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]))
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
    prepared = prepare_and_save(config, TokenizerConfig(vocab_size=300), 1, folder / str(pairs))
    assert len(prepared.stream.encoded) == pairs
    for step in range(200):
        prepared.stream.batch(step)
    found.append(peak)
    del prepared
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory is a process's own")
@pytest.mark.parametrize("pairs", [120_000, pytest.param(2_000_000, marks=pytest.mark.nightly)])
def test_a_pair_takes_a_few_numbers(tmp_path, pairs):
    """Lists of sentences took 1,600 bytes for each; an order, hashes and the sorting of them take a dozen numbers."""
    done = run_code(PROGRAM, tmp_path, 20_000, pairs)
    assert done.returncode == 0, done.stderr
    few, many = json.loads(done.stdout)
    assert many - few < 100 * (pairs - 20_000)
