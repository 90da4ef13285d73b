"""python scripts/plot_attention.py RUN SENTENCE, as a user calls it."""

import struct
import unicodedata

import pytest

from scripts import plot_attention

PROGRAM = "scripts/plot_attention.py"


def size_of_png(path):
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", content[16:24])


def test_three_pictures_and_the_translation(run_dir, call):
    translated = call("scripts/translate.py", run_dir, text=b"Tom runs here.")
    done = call(PROGRAM, run_dir, "  Tom runs   here.")
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    translation, *paths = done.stdout.decode().split("\n")[:-1]
    assert f"{translation}\n".encode() == translated.stdout
    kinds = ["encoder-decoder", "encoder", "decoder"]
    assert paths == [str(run_dir / "attention" / f"tom-runs-here-53995d.{kind}.png") for kind in kinds]
    assert {path.name for path in (run_dir / "attention").iterdir()} == {path.rpartition("/")[2] for path in paths}
    for kind in kinds:
        width, height = size_of_png(run_dir / "attention" / f"tom-runs-here-53995d.{kind}.png")
        assert 1200 < width < 4000 and 600 < height < 3000


@pytest.fixture
def draw(monkeypatch, capsys):
    """The program in this process; returns its exit code and what it prints to standard error."""

    def draw(*arguments):
        monkeypatch.setattr("sys.argv", [PROGRAM, *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            plot_attention.main()
        out, err = capsys.readouterr()
        assert out == ""
        return stopped.value.code, err

    return draw


def test_mistakes_end_in_one_line_and_code_2(run_dir, draw, tmp_path):
    mistakes = {
        "the sentence is empty": [run_dir, " \n"],
        "the sentence is not UTF-8": [run_dir, "Tom\udce9"],
        "the sentence has 81 tokens, too long to draw: choose one of at most 60": [run_dir, "漢字" * 13 + " 0"],
        "is not a run directory": [tmp_path, "Tom runs here."],
        "cannot change model.d_ff": [run_dir, "Tom runs here.", "model.d_ff=8"],
        "unknown key beam": [run_dir, "Tom runs here.", "beam=1"],
    }
    for message, arguments in mistakes.items():
        code, told = draw(*arguments)
        assert code == 2, message
        assert told.startswith("error: ") and message in told and told.count("\n") == 1, told
    code, told = draw(run_dir)
    assert code == 2 and "SENTENCE" in told


def test_a_translation_that_is_too_long_to_draw_is_told(run_dir, draw):
    code, told = draw(run_dir, "Tom", "decoding.beam_size=1", "decoding.max_length_extra=70")
    assert code == 2
    assert told.startswith("error: the translation has ") and told.count("\n") == 1


def test_file_names_are_short_and_safe_and_never_shared():
    assert plot_attention.slug("¿Dónde está la biblioteca?").startswith("donde-esta-la-biblioteca-")
    decomposed = unicodedata.normalize("NFD", " ¿Dónde  está la biblioteca?")
    assert plot_attention.slug(decomposed) == plot_attention.slug("¿Dónde está la biblioteca?")
    odd = [
        "../../etc/passwd",
        "a" * 300,
        "…",
        "漢",
        "where is it",
        "where is it?",
        "Where is it?",
        " ".join("abc" * 40),
    ]
    names = [plot_attention.slug(sentence) for sentence in odd]
    assert len(set(names)) == len(odd)
    for name in names:
        assert len(name) <= 50 and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
