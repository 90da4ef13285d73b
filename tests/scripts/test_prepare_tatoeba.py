"""manythings.org's download becomes the files of the tatoeba configs."""

from collections import Counter
from pathlib import Path

import pytest

from scripts import prepare_tatoeba as script

ATTRIBUTION = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (a) & #2 (b)"


def spa(folder: Path, pairs: list[str]) -> Path:
    path = folder / "spa.txt"
    path.write_text("".join(f"{pair}\t{ATTRIBUTION}\n" for pair in pairs), encoding="utf-8")
    return path


def hashes(folder: Path, **sets: list[str]) -> Path:
    """A list of held-out pairs as the project ships one."""
    lines = ["# set and hash"]
    for name, pairs in sets.items():
        lines += [f"{name} {script.key_of(*pair.split(chr(9)))}" for pair in pairs]
    path = folder / "held_out.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_known_pairs_are_held_out_and_their_relatives_left_out(tmp_path, monkeypatch, capsys):
    test, valid = ["Go on.\tSigue.", "Stop!\t¡Para!"], ["I run.\tCorro."]
    training = ["We eat.\tComemos.", "They sing.\tCantan."]
    relatives = ["go on!\tContinúa.", "Halt!\tPara.", "I am running.\tcorro"]  # each shares one folded sentence
    monkeypatch.setattr(script, "HELD_OUT", hashes(tmp_path, test=[*test, "Gone.\tIdo."], valid=valid))
    rows = [*training, *relatives, *test, *valid, training[0], "  We  eat. \tComemos."]
    script.prepare_tatoeba(spa(tmp_path, rows), tmp_path / "out")
    written = {name: (tmp_path / f"out/{name}.tsv").read_text(encoding="utf-8") for name in ("train", "valid", "test")}
    assert {name: sorted(text.splitlines()) for name, text in written.items()} == {
        "train": sorted(training), "valid": valid, "test": sorted(test)
    }  # fmt: skip
    printed = capsys.readouterr().out
    script.prepare_tatoeba(spa(tmp_path, rows[::-1]), tmp_path / "again")  # the order of the download does not matter
    assert {name: (tmp_path / f"again/{name}.tsv").read_text(encoding="utf-8") for name in written} == written
    assert "10 rows, 0 malformed, 8 distinct pairs" in printed
    assert "left out  3 pairs" in printed


@pytest.mark.slow
def test_the_files_of_the_published_figures_come_back(corpus_root, tmp_path):
    lines = [line for name in ("train", "valid", "test") for line in lines_of(corpus_root / f"{name}.tsv")]
    script.prepare_tatoeba(spa(tmp_path, sorted(lines)), tmp_path / "out")
    for name in ("train", "valid", "test"):
        assert Counter(lines_of(tmp_path / f"out/{name}.tsv")) == Counter(lines_of(corpus_root / f"{name}.tsv"))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


@pytest.mark.parametrize("content", ["Hola.\tHello.\n", "PK\x03\x04 not text\n", "", None])
def test_another_file_is_refused_and_nothing_written(refuses, tmp_path, content):
    file = tmp_path / "spa.txt"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    refuses(script.main, "" if file.exists() else f"there is no text file {file}", file, "--to", tmp_path / "out")
    assert not (tmp_path / "out").exists()
