"""python scripts/inspect_data.py CONFIG, as a user calls it."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from scripts.inspect_data import main

PROGRAM = "scripts/inspect_data.py"


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cells(printed: str, *start: str) -> list[str]:
    """The cells after ``start`` of the one line that begins so."""
    [line] = re.findall(rf"^{' +'.join(map(re.escape, start))} +(.*)$", printed, re.MULTILINE)
    return re.split(r"  +", line)


@pytest.mark.slow
def test_the_counts_are_those_of_the_files_and_the_card_is_written(small_experiment, call, tmp_path):
    run = tmp_path / "run"
    done = call(PROGRAM, small_experiment, f"run_dir={run}")
    assert done.stderr == b""
    printed = done.stdout.decode()
    for split, rows, tail in (("train", 160, ["1", "100.0%"]), ("valid", 8, []), ("test", 12, [])):
        file = small_experiment.parent / f"{split}.tsv"
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
        assert cells(printed, split, file.name) == [str(rows), "none", str(rows), *tail, sha256]
        lengths = [len(line.split("\t")[0]) for line in file.read_text(encoding="utf-8").splitlines()]
        mean, *_, longest = cells(printed, "characters", split, "en")
        assert (mean, longest) == (f"{sum(lengths) / rows:.1f}", str(max(lengths)))
    for splits in ("train/valid", "train/test", "valid/test"):
        assert cells(printed, splits) == ["0", "0"]
    assert cells(printed, "type") == ["unigram"]
    assert cells(printed, "epoch")[0].startswith("160 pairs in ")
    assert set(files_of(run)) == {"data_card.md"}
    titles = re.findall("^## (.*)$", (run / "data_card.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [title.upper() for title in titles] == re.findall("^[A-Z][A-Z ]+$", printed, re.MULTILINE)


def test_a_trained_run_keeps_its_tokenizer_and_all_its_files(run_dir, run_main, small_experiment, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(run_dir, run)
    before = files_of(run)
    code, printed, _ = run_main(main, small_experiment, f"run_dir={run}")
    assert code == 0
    assert before | {"data_card.md": (run / "data_card.md").read_bytes()} == files_of(run)
    report = json.loads(before["data.json"])
    digests = re.findall("^(?:SHA-256|fingerprint) +(.*)$", printed, re.MULTILINE)
    assert digests == [report["tokenizer"]["sha256"][:12], report["fingerprint"][:12]]


def test_mistakes_end_in_one_line_and_code_2(refuses, small_experiment, tmp_path):
    new = f"run_dir={tmp_path / 'run'}"
    refuses(main, "splits share sentences", small_experiment, new, "data.test=train.tsv")
    assert not (tmp_path / "run").exists()
