"""python scripts/inspect_data.py CONFIG, as a user calls it."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

PROGRAM = "scripts/inspect_data.py"


@pytest.fixture(scope="module")
def card(small_experiment, call, tmp_path_factory) -> tuple[str, Path]:
    """What is printed for the small experiment, and its run directory."""
    run = tmp_path_factory.mktemp("card") / "run"
    done = call(PROGRAM, small_experiment, f"run_dir={run}")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return done.stdout.decode(), run


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cells(printed: str, *start: str) -> list[str]:
    """The cells after ``start`` of the one line that begins so."""
    [line] = re.findall(rf"^{' +'.join(map(re.escape, start))} +(.*)$", printed, re.MULTILINE)
    return re.split(r"  +", line)


@pytest.mark.slow
def test_the_counts_are_those_of_the_files(card, small_experiment):
    printed, _ = card
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


def test_the_files_tell_the_same(card):
    printed, run = card
    assert set(files_of(run)) == {"data_card/data_card.md", "data_card/lengths.png", "data_card/batch.png"}
    paths = re.findall("^written  (.*)$", printed, re.MULTILINE)
    assert [Path(path).name for path in paths] == ["data_card.md", "lengths.png", "batch.png"]
    markdown = (run / "data_card/data_card.md").read_text(encoding="utf-8")
    assert [title.upper() for title in re.findall("^## (.*)$", markdown, re.MULTILINE)][:-1] == re.findall(
        "^[A-Z][A-Z ]+$", printed, re.MULTILINE
    )
    for name in re.findall(r"!\[.*\]\((.*)\)", markdown):
        content = (run / "data_card" / name).read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB`\x82")
        assert len(content) > 20_000


def test_a_trained_run_keeps_its_tokenizer_and_all_its_files(run_dir, call, small_experiment, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(run_dir, run)
    before = files_of(run)
    done = call(PROGRAM, small_experiment, f"run_dir={run}")
    assert done.returncode == 0, done.stderr.decode()
    after = files_of(run)
    assert {name: after[name] for name in before} == before
    assert {Path(name).parts[0] for name in set(after) - set(before)} == {"data_card"}
    report = json.loads(before["data.json"])
    told = re.findall("^(?:SHA-256|fingerprint) +(.*)$", done.stdout.decode(), re.MULTILINE)
    assert told == [report["tokenizer"]["sha256"][:12], report["fingerprint"][:12]]


@pytest.mark.slow
def test_mistakes_end_in_one_line_and_code_2(call, small_experiment, run_dir, tmp_path):
    run = f"run_dir={tmp_path / 'run'}"
    mistakes = {
        "there is no config file": [tmp_path / "nothing.yaml"],
        "unknown key data.rows": [small_experiment, run, "data.rows=3"],
        "no train file at": [small_experiment, run, "data.train=nowhere.tsv"],
        "splits share sentences": [small_experiment, run, "data.test=train.tsv"],
        "has checkpoints with a tokenizer of other text": [
            small_experiment,
            f"run_dir={run_dir}",
            "tokenizer.vocab_size=310",
        ],
    }
    for message, arguments in mistakes.items():
        done = call(PROGRAM, *arguments)
        assert done.returncode == 2, message
        assert done.stderr.decode().startswith("error: ")
        assert message in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
        assert done.stdout == b""
    assert not (tmp_path / "run").exists()
