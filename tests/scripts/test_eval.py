"""python eval.py RUN, as a user calls it."""

import dataclasses
import hashlib
import io
import json
import shutil
from contextlib import suppress

import pytest
import sacrebleu

from common.errors import UserError
from common.files import read_json_object, sha256_of_file
from data.noise import noised_pairs
from data.pairs import Pairs, as_tsv
from eval import main
from experiment.evaluate_run import load_test_set
from experiment.load_run import load_run
from experiment.reports import place_report
from scripts import translate


def test_a_report_of_the_test_set(run_dir, call):
    done = call("eval.py", run_dir)
    printed = done.stdout.decode()
    report = json.loads((run_dir / "eval" / "test.json").read_text(encoding="utf-8"))
    test_set = run_dir.parent / "test.tsv"
    assert report["test_set_sha256"] == hashlib.sha256(test_set.read_bytes()).hexdigest()
    assert (report["sources"], report["step"]) == (12, 0)
    assert report["overlap_with_training"] == {"sources": 0, "targets": 0}
    for told in (f"BLEU      {report['bleu']:.2f}", report["signature"], report["chrf_signature"], "at step 0"):
        assert told in printed
    translations = (run_dir / "eval" / "test.translations.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(translations) == 12
    first = test_set.read_text(encoding="utf-8").split("\t")[0]
    assert f"source       {first}\ntranslation  {translations[0]}\n" in printed
    assert printed.count("\nsource ") == 5


def read_report(run_dir, name):
    """The one report on a set that is not the run's own."""
    [path] = (run_dir / "eval").glob(f"{name}-????????.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def copy(run_dir, tmp_path):
    """A run of the test's own, without reports."""
    return shutil.copytree(run_dir, tmp_path / "copy", ignore=shutil.ignore_patterns("eval", "attention"))


@pytest.mark.slow
def test_translations_row_by_row_have_the_score_of_the_rows(copy, run_main, tmp_path):
    """The recipe of docs/comparing.md for other tools, on a set in which a source has three references."""
    sources = ["Tom runs here.", "Ana eats.", "Tom runs here.", "Tom", "Tom runs here."]
    references = ["¡Tom corre!", "Ana come.", "Tom corre aquí.", "Tom", "Aquí corre Tom."]
    rows = "".join(f"{source}\t{target}\n" for source, target in zip(sources, references, strict=True))
    (tmp_path / "rows.tsv").write_text(rows, encoding="utf-8")
    code, out_of_eval, _ = run_main(main, copy, f"data.test={tmp_path / 'rows.tsv'}")
    assert code == 0
    code, out, _ = run_main(translate.main, copy, text="".join(f"{source}\n" for source in sources).encode())
    assert code == 0
    report = read_report(copy, "rows")
    translations = out.split("\n")[:-1]
    assert sacrebleu.corpus_bleu(translations, [references]).score == report["bleu_per_row"]
    assert report["sources"] == 3 and len(translations) == 5
    assert "only 1 of 3 sentences have references that long" in report["bleu_note"]  # four tokens of 13a
    assert f" {report['bleu']:.2f}  95 % " in out_of_eval and f"\n          {report['bleu_note']}\n" in out_of_eval


def test_every_model_of_an_ensemble_has_the_precision_that_the_report_names(run_dir):
    overrides = [f"decoding.ensemble=[{run_dir}:latest]", "model.matmul_dtype=bfloat16"]
    run = load_run(run_dir, overrides, "eval.py")
    assert [(each.dtype, each.matmul_dtype) for each in run.translator.models] == [("float32", "bfloat16")] * 2


@pytest.mark.slow
def test_no_other_set_or_search_replaces_the_runs_own_report(copy, run_main, tmp_path, small_experiment):
    (tmp_path / "test.tsv").write_text("Tom eats.\t¡Tom!\n", encoding="utf-8")
    runs = [
        ["data.test=" + str(tmp_path / "test.tsv")],
        ["decoding.beam_size=1"],
        ["data.test=" + str(tmp_path / "test.tsv"), "decoding.beam_size=1"],
        [],
        ["data.test=" + str(small_experiment.parent / "test.tsv")],  # the run's own by its content
    ]
    for arguments in runs:
        code, out, err = run_main(main, copy, *arguments)
        assert (code, err) == (0, "")
    assert out.endswith(f"written   {copy}/eval/test.json, .jsonl and .translations.txt\n")
    own = json.loads((copy / "eval/test.json").read_text(encoding="utf-8"))
    assert (own["sources"], own["decoding"]["beam_size"]) == (12, 2)
    assert place_report(load_run(copy)).find() == copy / "eval/test.json"
    others = [json.loads(path.read_text(encoding="utf-8")) for path in (copy / "eval").glob("test-????????.json")]
    assert sorted((each["sources"], each["decoding"]["beam_size"]) for each in others) == [(1, 1), (1, 2), (12, 1)]
    assert len(list((copy / "eval").iterdir())) == 12
    another = load_run(copy, runs[0], may_change={"data.test"})
    found = place_report(another, sha256_of_file(tmp_path / "test.tsv")).find()
    assert found in (copy / "eval").glob("test-????????.json")


@pytest.mark.slow
def test_the_noised_score_is_that_of_a_set_with_the_noise_in_its_file(run_dir, copy, run_main, tmp_path):
    code, out, _ = run_main(main, copy, "--robust")
    report = json.loads((copy / "eval" / "test.json").read_text(encoding="utf-8"))
    bleu, chrf = report["noised"]["bleu"], report["noised"]["chrf"]
    assert code == 0 and f"noised    BLEU {bleu:.2f} ({bleu - report['bleu']:+.2f}), chrF {chrf:.2f}" in out
    rows = [line.split("\t") for line in (run_dir.parent / "test.tsv").read_text(encoding="utf-8").splitlines()]
    noised = noised_pairs(Pairs([source for source, _ in rows], [target for _, target in rows]))
    (tmp_path / "noised.tsv").write_text(as_tsv(noised), encoding="utf-8")
    assert run_main(main, copy, f"data.test={tmp_path / 'noised.tsv'}")[0] == 0
    other = read_report(copy, "noised")
    assert (other["bleu"], other["chrf"], other["noised"]) == (bleu, chrf, None)


@pytest.mark.slow
def test_a_test_set_that_has_changed_is_told_and_gets_another_report(copy, run_main, tmp_path):
    code, out, err = run_main(main, copy)
    own = (copy / "eval/test.json").read_bytes()
    facts = read_json_object(copy / "data.json")
    facts["files"]["test"][0]["sha256"] = "ab" * 32
    (copy / "data.json").write_text(json.dumps(facts), encoding="utf-8")
    code, out, err = run_main(main, copy)
    assert code == 0 and "test.tsv is not the test set recorded in" in err and err.count("\n") == 1
    assert (copy / "eval/test.json").read_bytes() == own and f"written   {copy}/eval/test-" in out
    assert place_report(load_run(copy)).find() is None


def test_scores_are_printed_although_the_report_cannot_be_written(copy, run_main, tmp_path):
    (copy / "eval").write_bytes(b"")  # a file, where nobody, not even root, can write a report
    code, out, err = run_main(main, copy)
    assert code == 2 and "\nBLEU  " in out and "\nreference " in out and "written" not in out
    assert err == (
        f"error: the results above are complete, but cannot be written to {copy}/eval: File exists; "
        "--output FOLDER chooses another place\n"
    )
    before = files_of(copy)
    code, out, err = run_main(main, copy, "--output", tmp_path / "scores")
    assert (code, err) == (0, "") and f"written   {tmp_path}/scores/test.json, .jsonl and" in out
    assert files_of(copy) == before
    assert len((tmp_path / "scores/test.translations.txt").read_text(encoding="utf-8").split("\n")[:-1]) == 12


def test_an_output_that_takes_nothing_costs_no_report(copy, run_main, monkeypatch):
    with suppress(OSError), open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(full, write_through=True))
        code, _, err = run_main(main, copy)
    assert (code, err.count("\n")) == (2, 1) and "No space left on device" in err
    assert place_report(load_run(copy)).find() == copy / "eval/test.json"


def test_reports_of_two_runs_in_one_folder(copy, run_main, tmp_path):
    for run in (copy, shutil.copytree(copy, tmp_path / "second"), copy):
        code, _, err = run_main(main, run, "--output", tmp_path / "scores")
        assert (code, err) == (0, "")
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "scores").glob("*.json")]
    assert sorted(report["run"] for report in reports) == [str(copy), str(tmp_path / "second")]


def files_of(folder):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def test_mistakes_end_in_one_line_and_code_2(run_dir, refuses, tmp_path):
    without_checkpoints = tmp_path / "run"
    shutil.copytree(run_dir, without_checkpoints, ignore=shutil.ignore_patterns("checkpoints", "eval"))
    mistakes = {
        "is not a run directory": [tmp_path / "nothing"],
        "no complete checkpoint": [without_checkpoints],
        "no test file at": [run_dir, "data.test=nowhere.tsv"],
        "eval.py cannot change model.d_model: 16 → 32": [run_dir, "model.d_model=32"],
        "run_dir is for train.py: eval.py uses the run": [run_dir, "run_dir=elsewhere"],
        "no checkpoint at step 99": [run_dir, "decoding.checkpoint=99"],
    }
    for message, arguments in mistakes.items():
        refuses(main, message, *arguments)
    assert not (without_checkpoints / "eval").exists()


def test_bad_lines_of_another_file_can_be_skipped_and_are_counted(run_dir, run_main, tmp_path):
    good = "Tom eats.\t¡Tom!\n" * 150
    (tmp_path / "rough.tsv").write_text(f"{good}no tab\nAna runs.\t¡Ana!\n", encoding="utf-8")
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'rough.tsv'}")
    assert code == 2 and f"{tmp_path / 'rough.tsv'}:151: no tab" in err
    code, out, err = run_main(main, run_dir, f"data.test={tmp_path / 'rough.tsv'}", "data.malformed=skip")
    assert code == 0, err
    report = read_report(run_dir, "rough")
    assert (report["rows"], report["rows_read"], report["malformed"]) == (151, 152, 1)
    assert "dropped   1 of 152 rows are not scored: 1 malformed, 0 empty\noverlap" in out


def test_a_set_of_which_too_much_would_be_dropped_has_no_score_unless_asked_for(run_dir, run_main, tmp_path):
    (tmp_path / "rougher.tsv").write_text("Tom eats.\t¡Tom!\nno tab\n\nAna runs.\t¡Ana!\n", encoding="utf-8")
    arguments = run_dir, f"data.test={tmp_path / 'rougher.tsv'}", "data.malformed=skip"
    code, _, err = run_main(main, *arguments)
    assert code == 2 and "1 of 4 lines are malformed, above data.max_malformed=0.01; the first is " in err
    assert not list((run_dir / "eval").glob("rougher*"))
    code, out, err = run_main(main, *arguments, "data.max_malformed=0.34")
    assert code == 0, err
    assert "dropped   2 of 4 rows are not scored: 1 malformed, 1 empty\noverlap" in out


def test_a_set_in_another_form_is_read_as_the_settings_say(run_dir, run_main, tmp_path):
    (tmp_path / "form.tsv").write_bytes("es\ten\n¡Ño!\tTom eats.\n".encode("latin-1"))
    form = ["data.encoding=latin-1", "data.header=skip", "data.columns=[es,en]", "data.quoting=keep"]
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'form.tsv'}", *form)
    assert code == 0, err
    assert read_report(run_dir, "form")["rows"] == 1


def test_exchanged_columns_are_told(run_dir, run_main, tmp_path):
    (tmp_path / "turned.tsv").write_text("¿Dónde está la casa?\tWhere is the house?\n" * 20, encoding="utf-8")
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'turned.tsv'}")
    assert code == 0 and err.count("\n") == 1
    assert err.startswith(f"warning: {tmp_path / 'turned.tsv'}: source and target look exchanged: in 20 of 20 pairs")
    assert err.endswith("; if they are, set data.columns=[es,en]\n")  # and not data.source=es, which eval.py refuses
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'turned.tsv'}", "data.columns=[es,en]")
    assert (code, err) == (0, "")


def test_what_casts_doubt_on_a_set_is_told(run_dir, run_main, tmp_path):
    (tmp_path / "odd.tsv").write_text(
        "Deutsch\tFranzösisch\nTom eats.\t¡Tom!\nTom sees.\t\n\tÂ¡Ana!\n", encoding="utf-8"
    )
    code, out, err = run_main(main, run_dir, f"data.test={tmp_path / 'odd.tsv'}", "data.header=skip")
    assert code == 0 and err.count("warning: ") == err.count("\n") == 2
    assert "1 of 8 sentences look like UTF-8 read in another encoding (Â¡Ana!)" in err
    assert (
        f"{tmp_path / 'odd.tsv'}: its first line (Deutsch, Französisch) does not look like a header and is a pair"
        in err
    )
    assert "\none-sided 2 of these rows have text on one side only\n" in out


def test_the_runs_own_held_out_set_keeps_its_columns(run_dir):
    run = load_run(run_dir)
    turned = dataclasses.replace(run.config.data, test="", columns=["es", "en"])
    with pytest.raises(UserError, match=r"name another with data\.test="):
        load_test_set(dataclasses.replace(run, config=dataclasses.replace(run.config, data=turned)))
