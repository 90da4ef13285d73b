"""python eval.py RUN, as a user calls it."""

import dataclasses
import hashlib
import json
import shutil

import pytest

from common.errors import UserError
from configs.load import load_run_config
from eval import main, name_of_source, name_set


def test_a_report_of_the_test_set(run_dir, call):
    done = call("eval.py", run_dir)
    assert done.returncode == 0, done.stderr.decode()
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


def test_another_file_gets_a_report_of_its_own_and_its_overlap_is_reported(run_dir, run_main):
    code, _, err = run_main(main, run_dir, f"data.test={run_dir.parent / 'train.tsv'}", "decoding.beam_size=1")
    assert code == 0, err
    report = json.loads((run_dir / "eval" / "train.json").read_text(encoding="utf-8"))
    assert report["overlap_with_training"] == {"sources": 160, "targets": 160}
    assert report["decoding"]["beam_size"] == 1


def test_mistakes_end_in_one_line_and_code_2(run_dir, run_main, tmp_path):
    without_checkpoints = tmp_path / "run"
    shutil.copytree(run_dir, without_checkpoints, ignore=shutil.ignore_patterns("checkpoints", "eval"))
    mistakes = {
        "is not a run directory": [tmp_path / "nothing"],
        "no complete checkpoint": [without_checkpoints],
        "no test file at": [run_dir, "data.test=nowhere.tsv"],
        "eval.py cannot change model.d_model: 16 → 32": [run_dir, "model.d_model=32"],
        "no checkpoint at step 99": [run_dir, "decoding.checkpoint=99"],
    }
    for message, arguments in mistakes.items():
        code, out, err = run_main(main, *arguments)
        assert (code, out) == (2, ""), message
        assert err.startswith("error: ") and message in err and err.count("\n") == 1
    assert not (without_checkpoints / "eval").exists()


def test_bad_lines_of_another_file_can_be_skipped_and_are_counted(run_dir, run_main, tmp_path):
    (tmp_path / "rough.tsv").write_text("Tom eats.\t¡Tom!\nno tab\nAna runs.\t¡Ana!\n", encoding="utf-8")
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'rough.tsv'}")
    assert code == 2 and f"{tmp_path / 'rough.tsv'}:2: no tab" in err
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'rough.tsv'}", "data.malformed=skip")
    assert code == 2 and "1 of 3 lines are malformed, above data.max_malformed=0.01; the first is " in err
    skip = ["data.malformed=skip", "data.max_malformed=0.34"]
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'rough.tsv'}", *skip)
    assert code == 0, err
    report = json.loads((run_dir / "eval" / "rough.json").read_text(encoding="utf-8"))
    assert (report["rows"], report["malformed"]) == (2, 1)
    (tmp_path / "rough.tsv").write_bytes("es\ten\n¡Ño!\tTom eats.\n".encode("latin-1"))
    form = ["data.encoding=latin-1", "data.header=skip", "data.columns=[es,en]", "data.quoting=keep"]
    code, _, err = run_main(main, run_dir, f"data.test={tmp_path / 'rough.tsv'}", *form)
    assert code == 0, err
    assert json.loads((run_dir / "eval" / "rough.json").read_text(encoding="utf-8"))["rows"] == 1


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("folder/mine.tsv", "mine"),
        ("/data/news.LANG.gz", "news"),
        ("v1.2.jsonl.gz", "v1.2"),
        ("Helsinki-NLP/opus-100:en-es:test", "opus-100.en-es.test"),
        ("phrasebook:phrases", "phrasebook.phrases"),
    ],
)
def test_a_set_has_its_own_name_in_the_run(source, name):
    assert name_of_source(source) == name


def test_the_runs_own_held_out_set_keeps_its_columns(run_dir):
    saved = dataclasses.replace(load_run_config(run_dir).data, test="")
    turned = dataclasses.replace(saved, columns=["es", "en"])
    with pytest.raises(UserError, match=r"name another with data\.test="):
        name_set(turned, saved, run_dir)
    assert name_set(dataclasses.replace(turned, test="mine.tsv"), saved, run_dir) == "mine"
    assert name_set(saved, saved, run_dir) == "test"


@pytest.mark.slow
def test_long_sources_are_translated_in_pieces_and_none_is_dropped(run_dir, run_main, tmp_path):
    long = " ".join(["Tom eats here today. Ana runs there."] * 9)
    (tmp_path / "long.tsv").write_text(f"{long}\t¡{long}!\nTom eats.\t¡Tom!\n", encoding="utf-8")
    code, out, err = run_main(main, run_dir, f"data.test={tmp_path / 'long.tsv'}")
    assert code == 0, err
    assert "in pieces 1 sources" in out
    report = json.loads((run_dir / "eval" / "long.json").read_text(encoding="utf-8"))
    assert (report["sources"], report["in_pieces"]) == (2, 1)
    assert all((run_dir / "eval" / "long.translations.txt").read_text(encoding="utf-8").split("\n")[:-1])
