"""python scripts/compile_for.py TARGET CONFIG, as far as that goes without the compilers; with them, test_aot.py."""

from pathlib import Path

from scripts.compile_for import main

CONFIG = Path(__file__).parents[2] / "configs/quickstart.yaml"


def test_an_unknown_target_is_one_line_and_nothing_is_written(refuses, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses(main, "unknown target h300:8; the nearest is h200. Targets are t4, h100, ", "h300:8", CONFIG)
    assert list(tmp_path.iterdir()) == []
