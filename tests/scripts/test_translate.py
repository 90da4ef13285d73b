"""python scripts/translate.py RUN, as a user calls it."""

import json
import math
import os
import pty
import shutil
import subprocess
import sys

import pytest

from cli import standard_input
from common.files import read_json_object
from common.programs import ROOT
from data.long_lines import Usual
from evaluation.n_best import distinct
from evaluation.sentences import Sentence, as_lines
from evaluation.translate import Translation
from experiment.load_run import load_run
from scripts import translate
from scripts.translate import HELP

PROGRAM = "scripts/translate.py"
GREEDY, BEAM = "decoding.beam_size=1", "decoding.beam_size=2"  # the first is compiled faster


@pytest.fixture
def run(run_dir, run_main):
    """The program's lines."""

    def run(*options, text=None):
        search = [] if BEAM in options else [GREEDY]
        code, out, err = run_main(translate.main, run_dir, *search, *options, text=(text or TEXT).encode())
        assert code == 0, err
        return out.split("\n")[:-1]

    return run


LINES = ["Tom runs here.", "", "Ana eats there today now."]
TEXT = "\n".join(LINES) + "\n"


def test_json_has_a_line_for_a_line_and_agrees_with_the_text(run):
    plain = run("--on-error=blank")  # which changes nothing without a bad line
    assert plain == run()
    scored = [json.loads(line) for line in run("--scores")]
    assert [each["line"] for each in scored] == [1, 2, 3]
    assert [each["source"] for each in scored] == LINES
    assert [[one["text"] for one in each["translations"]] for each in scored] == [[text] for text in plain]
    first, empty = scored[0]["translations"][0], scored[1]["translations"][0]
    assert first["log_prob"] < first["score"] < 0
    assert empty == {"text": "", "log_prob": 0.0, "score": 0.0, "ended": True}
    lists = [json.loads(line)["translations"] for line in run(BEAM, "--nbest", "2")]
    assert [each[0]["text"] for each in lists] == run(BEAM) and [len(each) for each in lists] == [2, 1, 2]


@pytest.mark.slow
def test_an_alignment_joins_every_target_word_to_a_source_word(run):
    for line in run("--alignment", "--prefix", "Tom Ana", "--interactive"):
        facts = json.loads(line)
        words, alignment = (facts["translations"][0][key] for key in ("words", "alignment"))
        assert facts["source_words"] == [word.strip(".") for word in facts["source"].split()]
        assert [target for _, target in alignment] == list(range(len(words)))
        assert all(0 <= source < len(facts["source_words"]) for source, _ in alignment)
        assert facts["translations"][0]["text"].startswith("Tom Ana") == bool(facts["source"])


def test_a_line_is_translated_sentence_by_sentence_and_a_note_tells_of_a_sentence_that_is_cut(run_dir, run_main):
    """Their translations, one after the other: in a beam, the score is their sum."""
    text = b"Tom eats.\nAna runs!\nTom eats. Ana runs!\n" + b"Tom eats here and " * 9
    code, out, err = run_main(translate.main, run_dir, BEAM, "--scores", text=text)
    first, second, both, _ = (json.loads(line)["translations"][0] for line in out.splitlines())
    assert both["text"] == f"{first['text']} {second['text']}".strip()
    assert math.isclose(both["score"], first["score"] + second["score"])
    assert (code, err) == (0, "line 4 has a sentence that is too long for the model, which was cut\n")


BAD = b"Tom runs here.\nAn\xe9\nAna eats there.\n\n\xff\n"
REASONS = ["line 2: invalid UTF-8 at byte 3 of the line", "line 5: invalid UTF-8 at byte 1 of the line"]


def test_lines_before_a_bad_one_are_translated_and_it_is_named(run_dir, run_main):
    whole = run_main(translate.main, run_dir, GREEDY, text=b"Tom runs here.\n")[1]
    assert run_main(translate.main, run_dir, GREEDY, text=BAD) == (2, whole, f"error: {REASONS[0]}\n")


def test_a_bad_line_is_blank_and_costs_no_other(run_dir, run_main):
    good = run_main(translate.main, run_dir, GREEDY, text=b"Tom runs here.\n\nAna eats there.\n\n\n")[1]
    code, out, err = run_main(translate.main, run_dir, GREEDY, "--on-error=blank", text=BAD)
    assert (code, out) == (2, good)
    summary = "error: 2 of 5 lines could not be translated; they are blank, or have an error as JSON"
    assert err.splitlines() == [*REASONS, summary]


def test_as_json_a_bad_line_has_its_number_and_error(run_dir, run_main):
    code, out, _ = run_main(translate.main, run_dir, GREEDY, "--on-error=blank", "--scores", "--interactive", text=BAD)
    first, bad, third, empty, last = map(json.loads, out.splitlines())
    assert code == 2
    assert (bad, last) == (
        {"line": 2, "error": "invalid UTF-8 at byte 3 of the line"},
        {"line": 5, "error": "invalid UTF-8 at byte 1 of the line"},
    )
    sources = {each["line"]: each["source"] for each in (first, third, empty)}
    assert sources == {1: LINES[0], 3: "Ana eats there.", 4: ""}


PREFIX = "Tom Ana runs here there"  # too long for "Tom"
WHOLE = "decoding.max_source_tokens=64"


@pytest.mark.slow
def test_a_prefix_too_long_for_one_line_costs_that_line_alone(run_dir, run_main):
    lines = ["Ana eats there today now, and Tom runs here.", "Tom", "", "Tom runs here and Ana eats there today now."]
    others = "\n".join(lines[:1] + lines[2:]).encode()
    fits = run_main(translate.main, run_dir, GREEDY, WHOLE, "--prefix", PREFIX, text=others)[1].splitlines()
    assert all(text.startswith(PREFIX) == bool(text) for text in fits) and fits[1] == ""
    text, options = "\n".join(lines).encode(), [GREEDY, WHOLE, "--prefix", PREFIX]
    code, out, err = run_main(translate.main, run_dir, *options, "--on-error", "blank", text=text)
    assert (code, out.splitlines()) == (2, [fits[0], "", *fits[1:]])
    note, error = err.splitlines()
    assert note.startswith("line 2: the prefix has ") and "the translation of this sentence may have only" in note
    assert error.startswith("error: 1 of 4 lines could not be translated")
    code, out, err = run_main(translate.main, run_dir, *options, text=text)
    assert (code, out.splitlines()) == (2, fits[:1])
    assert err.startswith("error: line 2: the prefix has ") and err.count("\n") == 1


def test_of_those_that_read_alike_the_best_is_kept_in_its_place():
    spelled = [Translation(text, [], [], -float(score), -float(score), True, []) for score, text in enumerate("abacb")]
    assert distinct(spelled) == [spelled[0], spelled[1], spelled[3]]


def test_mistakes_end_in_one_line_before_anything_is_printed(run_dir, refuses, tmp_path):
    for message, options in {
        "--nbest 3 must be from 1 to decoding.beam_size, 2": ["--nbest", "3"],
        "--nbest 0 must be": ["--nbest", "0"],
        "leave one of them out": ["--nbest", "2", "decoding.mbr=bleu"],
        "and --on-error is for lines": ["--format", "text", "--on-error", "blank"],
        "--prefix must be UTF-8, not An<U+DCE9>": ["--prefix", "An\udce9"],
        "nowhere is not a run directory": ["decoding.ensemble=[nowhere]"],
        "last-5": ["decoding.checkpoint=last-5"],
        "translating cannot change model.d_ff": ["model.d_ff=8"],
    }.items():
        refuses(translate.main, message, run_dir, *options)
    refuses(translate.main, "is not a run directory", tmp_path)


@pytest.mark.slow
def test_a_closed_pipe_ends_it_quietly(run_dir):
    """The reader takes one line and goes, as ``head -1`` does, while there are more blocks to translate."""
    command = [sys.executable, str(ROOT / PROGRAM), str(run_dir), GREEDY]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"Tom\n" * standard_input.LINES)
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"Tom\n" * standard_input.LINES)
        process.stdin.close()
        assert process.stderr.read() == b""


def test_a_run_older_than_its_record_splits_lines_unlike_those_of_its_validation_set(run_dir, tmp_path):
    """Without a validation set, every line; a source may then fill a row."""
    run, old = load_run(run_dir), shutil.copytree(run_dir, tmp_path / "old")
    assert run.translator.usual.sentences == 1 < run.translator.usual.tokens < 64
    facts = read_json_object(old / "data.json")
    (old / "data.json").write_text(json.dumps({key: facts[key] for key in facts if key != "usual_source"}))
    assert load_run(old).translator.usual == Usual(1, 64)
    lines = [Sentence(source, ["Sí."], "Sí.", ["Sí."], -1.0, -1.0, True, 1) for source in ("Yes.", "Yes. No, Mr. Tom.")]
    (old / "eval").mkdir(exist_ok=True)
    (old / "eval" / "valid.jsonl").write_text(as_lines(lines))
    assert load_run(old).translator.usual == Usual(2, 64)


def test_at_a_terminal_it_says_what_it_is_how_to_leave_and_what_help_does(run_dir):
    """In a terminal of its own; :quit ends it as Ctrl-D does, before the line that follows."""
    mine, its = pty.openpty()
    command = [sys.executable, str(ROOT / PROGRAM), str(run_dir), GREEDY]
    with subprocess.Popen(command, stdin=its, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.write(mine, b":help\nTom runs here.\n :quit \nTom\n")
        out, err = (text.decode() for text in process.communicate(timeout=120))
    os.close(mine)
    os.close(its)
    greeting, *help = err.splitlines()
    assert process.returncode == 0 and out.count("\n") == 1
    assert greeting.startswith(f"{run_dir} translates from en to es: ") and "Ctrl-D ends" in greeting
    assert help == HELP.splitlines() and "Ctrl-D ends" in HELP


def test_a_terminal_gets_no_controls_and_a_pipe_gets_the_text_as_it_is(run_dir, call):
    """A document without letters comes back unchanged."""
    text, options = "\x1b[7 \u202e\n", [run_dir, GREEDY, "--format=text"]
    assert call(PROGRAM, *options, text=text.encode()).stdout == text.encode()
    mine, its = pty.openpty()
    subprocess.run([sys.executable, ROOT / PROGRAM, *options], input=text.encode(), stdout=its, check=True)
    os.close(its)
    assert os.read(mine, 100) == b"\\u001b[7 \\u202e\r\n"
    os.close(mine)


def test_a_document_keeps_what_is_no_text(run_dir, run_main, refuses):
    page = b"<h1 id='a'>Tom runs</h1>\r\n<pre>Tom</pre> https://tom.org/ <!-- 1990 -->"
    code, out, _ = run_main(translate.main, run_dir, GREEDY, "--format", "html", text=page)
    assert code == 0 and out.startswith("<h1 id='a'>") and out.endswith("</h1>\r\n" + page.decode().split("\r\n")[1])
    assert run_main(translate.main, run_dir, GREEDY, "--format=text", text=b"\n 7 \n")[:2] == (0, "\n 7 \n")
    code, out, err = run_main(translate.main, run_dir, GREEDY, "--format=text", text=b"Tom\xff")
    assert (code, out, err) == (2, "", "error: line 1 of the document: invalid UTF-8 at byte 4 of the line\n")
    refuses(
        translate.main,
        "--format is for a whole document, and --scores is for lines",
        run_dir,
        "--format=text",
        "--scores",
    )


def test_a_lost_number_is_told_and_in_json(run_dir, run_main):
    code, out, err = run_main(translate.main, run_dir, GREEDY, "--scores", text=b"Tom runs.\nTom 4711\n")
    doubt = "the translation lacks the number 4711"
    first, second = (json.loads(line)["translations"][0].get("doubts", []) for line in out.splitlines())
    assert code == 0 and doubt not in first and doubt in second and f"line 2: {doubt}\n" in err
