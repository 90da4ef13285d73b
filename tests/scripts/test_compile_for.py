"""python scripts/compile_for.py TARGET CONFIG, as far as that goes without the compilers; with them, test_aot.py."""

from pathlib import Path

PROGRAM, ROOT = "scripts/compile_for.py", Path(__file__).parents[2]
CONFIG = ROOT / "configs/quickstart.yaml"


def test_an_unknown_target_is_one_line_and_nothing_is_written(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(PROGRAM, "h300:8", CONFIG)
    assert done.returncode == 2 and done.stdout == b"" and list(tmp_path.iterdir()) == []
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("error: unknown target h300:8; the nearest is h200. Targets are t4, h100, ")


def test_help_shows_targets_and_examples(call):
    printed = call(PROGRAM, "--help").stdout.decode()
    assert "v5p:2x2x4" in printed and "python scripts/compile_for.py h200:1 configs/transformer-big.yaml" in printed
