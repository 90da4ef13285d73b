"""scripts/plot_curves.py: where the picture goes, and what cannot be drawn."""

import json

import pytest

from scripts.plot_curves import main

LINE = {"step": 10, "kind": "valid", "minutes": 1.0, "bleu": 20.0, "cross_entropy": 2.0}


@pytest.fixture
def runs(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text(json.dumps(LINE) + "\n")
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.slow
def test_the_picture_goes_to_the_first_run_or_the_output_whose_name_decides_the_format(runs, tmp_path, run_main):
    """And equal figures are equal files."""
    for name, start in (("x.pdf", b"%PDF-"), ("x.svg", b"<?xml"), ("x.png", b"\x89PNG"), ("", b"\x89PNG")):
        path, files = tmp_path / name if name else runs[0] / "curves.png", []
        for _ in range(2):
            assert run_main(main, *runs, *(["--output", path] if name else [])) == (0, f"written  {path}\n", "")
            files.append(path.read_bytes())
        assert files[0].startswith(start) and files[0] == files[1]
        path.unlink()


def test_what_sweeps_leave_beside_their_runs_is_skipped(runs, tmp_path, run_main):
    (tmp_path / "one.txt").write_text("step 10\n")
    arguments = sorted([*runs, tmp_path / "one.txt"])
    assert run_main(main, *arguments) == (0, f"written  {runs[0] / 'curves.png'}\n", "")


def test_what_cannot_be_drawn(runs, tmp_path, refuses):
    refuses(main, "RUN")
    refuses(main, "nothing is no run directory: it has no metrics.jsonl", runs[0], tmp_path / "nothing")
    refuses(main, "is a folder; name a file", runs[0], "--output", tmp_path)
    refuses(main, "x.jpg must end in .png, .svg or .pdf", runs[0], "--output", tmp_path / "x.jpg")
    assert not (runs[0] / "curves.png").exists()
