"""scripts/export.py: an export beside the run that it is from, and what cannot be exported."""

import json
import shutil
import subprocess
import sys
from importlib import import_module

import pytest

from configs.load import load_config, load_run_config, save_config
from data.pairs import normalise
from experiment.load_run import load_run
from scripts import translate
from scripts.export import FLOAT32, check_export, main
from tests.drawn import drawn_state, make_ending
from tests.exports.hostile import HOSTILE
from tests.saved import save
from tests.training.test_disks import ROOT, in_namespace
from training.run.corpus import load_held_out, load_tokenizer


@pytest.fixture(scope="module")
def ending_run(run_dir, tmp_path_factory):
    """A run whose translations end."""
    return make_ending_run(run_dir, tmp_path_factory.mktemp("ending") / "run", end=25.0, scale=30)


def make_ending_run(run_dir, run, end, scale):
    """Random parameters, but EOS has the logit ``end`` and PAD, UNK and BOS are as good as never."""
    shutil.copytree(run_dir, run)
    config = load_run_config(run)
    state = drawn_state(config.model, config.training, load_tokenizer(run).vocab_size)
    make_ending(state.params, end, scale)
    save(run, state, {"best_step": 0})
    return run


@pytest.fixture(scope="module", params=["ct2", pytest.param("hf", marks=pytest.mark.torch)])
def exported(request, ending_run, tmp_path_factory, call):
    folder = tmp_path_factory.mktemp("exports") / request.param
    done = call("scripts/export.py", ending_run, request.param, folder, "decoding.beam_size=3")
    return folder, done.stdout.decode()


def sources_of(run):
    """Those of its test set."""
    return load_held_out(load_run_config(run).data, "test", run)[0].sources


def printed_by_export(folder, text):
    """What an export's own program makes of a text, elsewhere."""
    command = [sys.executable, str(folder / "translate.py")]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True, cwd="/").stdout.decode()


@pytest.mark.slow
def test_an_export_is_the_run(exported, ending_run, run_main):
    folder, printed = exported
    facts = json.loads((folder / "export.json").read_text(encoding="utf-8"))
    found = facts["check"]
    assert found["sentences"] == 12 and found["log_prob_difference"] < 1e-4 and found["same_tokens"] == 12
    assert found["same_translations"] == 12
    kind = {"ct2": "ct2 (float32)"}.get(folder.name, folder.name)
    assert f"written  {folder}: {ending_run} at step 0, as {kind}\n" in printed
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for line in printed.splitlines()[1:]:
        assert line in readme
    assert "`beam_size=3`, `normalization=gnmt` and `length_penalty=" in readme and "without: none." in readme
    text = "".join(f"{source}\n" for source in [*sources_of(ending_run), ""])
    alone = printed_by_export(folder, text)
    _, ours, _ = run_main(translate.main, ending_run, "decoding.beam_size=3", *FLOAT32, text=text.encode())
    assert alone == ours and alone.endswith("\n\n") and len(set(alone.splitlines())) > 5


@pytest.mark.slow
def test_the_limit_of_length_cuts_the_translations_that_the_run_cuts(run_dir, run_main, tmp_path):
    """In a beam, what ended comes first; a carriage return ends no line."""
    ending_run = make_ending_run(run_dir, tmp_path / "run", end=4.0, scale=10)
    short = ["decoding.beam_size=3", "decoding.max_length_factor=0", "decoding.max_length_extra=4"]
    code, _, _ = run_main(main, ending_run, "ct2", tmp_path / "short", "--no-check", *short)
    lines = [*sources_of(ending_run), "Tom\rruns."]
    text = "".join(f"{line}\n" for line in lines)
    alone = printed_by_export(tmp_path / "short", text)
    _, ours, _ = run_main(translate.main, ending_run, *short, *FLOAT32, text=text.encode())
    assert code == 0 and alone == ours and alone.count("\n") == len(lines)


@pytest.mark.slow
def test_lines_of_several_sentences_or_too_long_or_odd(exported, ending_run, run_main):
    """The run's translations, of the same pieces, all of which end: libraries differ in what they do if none does."""
    folder, _ = exported
    most = json.loads((folder / "export.json").read_text(encoding="utf-8"))["longest_source"]
    seen = ["Tom runs. ¿Ana eats? Mr. Tom!", "runs here " * most, "The\u200b To\u00adm.", "TOM RUNS.", "می\u200cخواهم"]
    text = "".join(f"{line}\n" for line in [*seen, "\u200b\u2060", "\u200d"])
    alone = printed_by_export(folder, text)
    _, ours, _ = run_main(translate.main, ending_run, "decoding.beam_size=3", *FLOAT32, text=text.encode())
    assert alone == ours and alone.endswith("\n\n\n") and all(alone.splitlines()[:5])


@pytest.mark.slow
def test_longer_sources_than_the_format_takes_are_not_compared(exported, ending_run):
    folder, _ = exported
    run = load_run(ending_run, FLOAT32, "test")
    lines = sources_of(ending_run)
    lengths = [len(tokens) + 1 for tokens in run.translator.encode_sources(list(map(normalise, lines)))]
    longest = sorted(lengths)[3]
    found = check_export(run, folder, len(lines), longest)
    assert found and found.sentences == sum(length <= longest for length in lengths) < len(lines)


@pytest.mark.slow
def test_hostile_strings_have_the_same_tokens(exported, run_dir, monkeypatch):
    folder, _ = exported
    monkeypatch.syspath_prepend(folder)
    model = import_module("translate").Model()
    for name in ("translate", "sentences"):
        monkeypatch.delitem(sys.modules, name)
    translator = load_run(run_dir, [], "test").translator
    vocabulary, strings = translator.tokenizer.vocabulary(), [*HOSTILE, "palabra " * 120_000]
    for text, tokens in zip(strings, translator.encode_sources([normalise(text) for text in strings]), strict=True):
        pieces = [vocabulary[token] for token in tokens]
        assert model.encode(text) == pieces
        assert model.decode([*pieces, "</s>"]) == translator.spell([tokens])[0]


def test_searches_without_an_equivalent_are_named(run_dir, run_main, tmp_path):
    code, out, err = run_main(main, run_dir, "ct2", tmp_path / "new", "--no-check", "decoding.mbr=chrf")
    assert (code, err) == (0, "") and out.endswith("\nnot compared with the run\n")
    readme = " ".join((tmp_path / "new/README.md").read_text().split())
    assert "searches without: `decoding.mbr=chrf`." in readme
    assert json.loads((tmp_path / "new/export.json").read_text())["check"] is None


def test_without_the_other_library_nothing_is_compared(run_dir, run_main, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "transformers", None)
    code, out, err = run_main(main, run_dir, "hf", tmp_path / "new", "--license", "cc-by-2.0")
    assert (code, err) == (0, "")
    assert out.endswith("\nnot compared with the run, which needs pip install torch transformers\n")
    readme = (tmp_path / "new/README.md").read_text()
    assert "\nlicense: cc-by-2.0\n" in readme and readme.endswith("## Checked\n\nNot compared with the run.\n")


def test_what_is_refused(run_dir, refuses, tmp_path, monkeypatch, small_experiment):
    new = tmp_path / "new"
    refuses(main, "FOLDER is missing", run_dir, "ct2")
    refuses(main, "there is no format onnx; choose ct2 or hf", run_dir, "onnx", new)
    refuses(main, "--quantization=int8 is for the format ct2", run_dir, "hf", new, "--quantization", "int8")
    refuses(main, "invalid choice: 'int3'", run_dir, "ct2", new, "--quantization", "int3")
    refuses(main, "is not a run directory", tmp_path / "none", "ct2", new)
    refuses(main, "exists and is not an empty folder", run_dir, "ct2", run_dir)
    refuses(main, "decoding.ensemble", run_dir, "ct2", new, f"decoding.ensemble=[{run_dir}]")
    without = shutil.copytree(run_dir, tmp_path / "without", ignore=shutil.ignore_patterns("checkpoints"))
    refuses(main, f"{without} has no complete checkpoint", without, "ct2", new)
    additive = shutil.copytree(run_dir, tmp_path / "additive")
    save_config(load_config(small_experiment, ["model.score=additive"]), additive / "config.yaml")
    refuses(main, "cannot be exported to ct2: CTranslate2 has no model.score=additive", additive, "ct2", new)
    refuses(main, "cannot be exported to hf: transformers has no model.score=additive", additive, "hf", new)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    refuses(main, "the format ct2 needs more: pip install ctranslate2", run_dir, "ct2", new)
    assert not new.exists() and not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_a_full_disk_keeps_nothing_of_an_export(run_dir, tmp_path, small_experiment):
    disk = tmp_path / "disk"
    program = f"{sys.executable} {ROOT / 'scripts/export.py'} {run_dir} ct2 $DISK/new --no-check"
    script = f"mount -o remount,size=40k $DISK; {program} 2>&1; echo $?; ls -A $DISK"
    told = "No space left on device; make room, then start the same command again"
    assert in_namespace(disk, small_experiment, script) == [f"error: cannot write {disk}/new: {told}", "2"]
