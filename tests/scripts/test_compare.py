"""scripts/compare.py: systems and their seeds, what is printed and written, and what cannot be compared."""

import json
import shutil
from dataclasses import replace

import pytest

from configs.load import load_run_config
from data.sources.report import SourceReport
from evaluation.comparison.compare import notes_on
from evaluation.metrics import score
from scripts.compare import main
from tests.drawn import drawn_state
from tests.evaluation.comparison.systems import drawn_set
from tests.saved import save
from training.run.manifest import read_manifest


@pytest.fixture
def runs(make_run):
    """Two seeds of a baseline and two of another system, which is better."""
    base = [make_run(f"base-{seed}", 0.4, seed, f"training.seed={seed}") for seed in (1, 2)]
    new = [make_run(f"new-{seed}", 0.2, 9 + seed, f"training.seed={seed}", "model.dropout=0.3") for seed in (1, 2)]
    return base + new


def compared(run_main, tmp_path, *arguments):
    code, out, err = run_main(main, *arguments, "--json", tmp_path / "all.json")
    assert (code, err) == (0, "")
    return out, json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))


def bleu_of(run):
    return json.loads((run / "eval/test.json").read_text(encoding="utf-8"))["bleu"]


def test_runs_that_differ_by_their_seed_are_one_system(runs, run_main, tmp_path):
    out, facts = compared(run_main, tmp_path, *runs)
    assert facts["systems"] == [f"{str(run)[:-2]} (seeds 1, 2)" for run in (runs[0], runs[2])]
    assert [each["runs"] for each in facts["bleu"]] == [[bleu_of(runs[0]), bleu_of(runs[1])], [*map(bleu_of, runs[2:])]]
    [against] = facts["against"]
    assert against["config"] == ["model.dropout: 0.1 → 0.3"]
    expected = sum(bleu_of(run) for run in runs[2:]) / 2 - sum(bleu_of(run) for run in runs[:2]) / 2
    assert against["bleu"]["difference"] == pytest.approx(expected)
    assert 0 < against["bleu"]["interval"]["low"] < expected < against["bleu"]["interval"]["high"]
    assert against["bleu"]["p"] < 0.05 and against["bleu"]["verdict"] == "better"
    few = "The set has only 40 sentences: another set of this size may well reverse the order."
    assert facts["notes"] == [few, "40 sentences in 40 groups."]
    assert out.startswith(f"SCORES\n{few} 40 sentences in 40 groups.\nsystem")
    for heading in ("SCORES", "DIFFERENCES", "WHAT DIFFERS", "BLEU BY WORDS OF THE SOURCE", "LARGEST GAINS"):
        assert f"\n\n{heading}" in f"\n\n{out}"
    assert "model.dropout       0.1   0.3\n" in out


def test_seeds_of_one_config_are_compared_with_each_other(runs, run_main, tmp_path):
    _, facts = compared(run_main, tmp_path, *runs[:2])
    assert facts["systems"] == [str(run) for run in runs[:2]]
    assert facts["against"][0]["config"] == ["training.seed: 1 → 2"]


def test_p_values_of_several_systems_are_adjusted(runs, make_run, run_main, tmp_path):
    third = make_run("third", 0.4, 77, "training.seed=1", "model.dropout=0.2")
    out, facts = compared(run_main, tmp_path, runs[0], runs[2], third)
    assert [f"LARGEST GAINS\nIn {run}. By chrF" in out for run in (runs[0], runs[2], third)] == [False, True, True]
    first, second = (each["bleu"] for each in facts["against"])
    assert first["p"] < second["p"]
    assert first["p_adjusted"] == pytest.approx(2 * first["p"])
    assert first["p_adjusted"] < 0.01 and not first["seeds_are_known"]
    verdicts = first["verdict"], second["verdict"]
    assert verdicts == ("of these two runs: better", "of these two runs: no difference found")
    assert second["p_adjusted"] == pytest.approx(max(second["p"], first["p_adjusted"]))


def search_again(run, name, beam_size):
    """The report of another search, with the same translations."""
    report = json.loads((run / "eval/test.json").read_text(encoding="utf-8"))
    report["decoding"]["beam_size"] = beam_size
    shutil.copy(run / "eval/test.jsonl", run / f"eval/{name}.jsonl")
    (run / f"eval/{name}.json").write_text(json.dumps(report), encoding="utf-8")
    return run / f"eval/{name}.json"


def test_two_searches_of_one_model_share_its_seed(runs, run_main, tmp_path):
    """What seeds do to both alike is no noise of their difference: the better search gains the same with each."""
    _, facts = compared(run_main, tmp_path, *runs[:2], *(search_again(run, "other", 1) for run in runs[:2]))
    [against] = facts["against"]
    assert against["config"] == ["decoding.beam_size: 2 → 1"]
    assert against["bleu"]["interval"] == {"low": 0, "high": 0} and against["bleu"]["seeds_are_known"]


def test_other_searches_of_the_same_models_say_nothing_more_about_seeds(runs, run_main, tmp_path):
    _, alone = compared(run_main, tmp_path, *runs[:3])
    searches = [search_again(run, f"beam-{size}", size) for size in (1, 3) for run in runs[:2]]
    _, beside = compared(run_main, tmp_path, *runs[:3], *searches)
    assert len(beside["against"]) == 3
    assert beside["against"][0]["bleu"]["interval"] == alone["against"][0]["bleu"]["interval"]


def test_what_sweeps_leave_beside_their_runs_is_skipped(runs, run_main, tmp_path, refuses):
    outputs = [run.with_name(f"{run.name}.txt") for run in runs]
    for output in outputs:
        output.write_text("step 7\n")
    _, facts = compared(run_main, tmp_path, *sorted([*runs[:3], *outputs[:3]]))
    assert facts["against"][0]["bleu"]["seeds_are_known"]  # from the baseline's two runs
    assert facts["systems"] == [f"{str(runs[0])[:-2]} (seeds 1, 2)", str(runs[2])]
    refuses(main, f"name two runs or more, not {runs[0]} alone", runs[0], outputs[0])


def test_what_is_to_be_known_of_the_set():
    short = [replace(each, references=["uno"], translation="uno") for each in drawn_set(100)]
    assert notes_on(short) == [f"{score(['uno'] * 100, [['uno']] * 100).bleu_note}."]
    assert notes_on(drawn_set(100)) == []


def test_keys_that_change_no_translation_make_no_system(make_run, run_main, tmp_path):
    one = make_run("one", 0.4, 1)
    other = make_run("other", 0.4, 2, "training.seed=5", "training.log_every=3", "decoding.batch_sentences=7")
    third = make_run("third", 0.3, 3, "model.dropout=0.4")
    _, facts = compared(run_main, tmp_path, one, other, third)
    assert len(facts["systems"]) == 2 and facts["systems"][0] == f"{one} (seeds 1, 5)"
    for run, train in ((one, "a"), (other, "b")):  # but another corpus in files of the same names does
        test = json.loads((run / "eval/test.json").read_text(encoding="utf-8"))["test_set_sha256"]
        files = {"train": [{"sha256": train * 8}], "valid": [{"sha256": "v"}], "test": [{"sha256": test}]}
        corpus = {"tokenizer": {"sha256": "t"}, "fingerprint": "f", "files": files, "training_pairs": 9}
        (run / "data.json").write_text(json.dumps(corpus))
    _, facts = compared(run_main, tmp_path, one, other, third)
    assert facts["against"][0]["config"] == ["training.seed: 1 → 5", "data.train: SHA-256 aaaaaaaa → bbbbbbbb"]


def test_a_report_of_another_checkpoint_or_test_set_than_the_runs_own_is_refused(make_run, refuses, run_main, tmp_path):
    """As in a copy of a run that was trained further: at the copied step, it would show the score of the original."""
    run, base = make_run("run", 0.4, 1), make_run("base", 0.4, 2, "training.seed=2")
    config = load_run_config(run)
    state = drawn_state(config.model, config.training, 300)
    kept = save(run, state._replace(step=state.step + 7), {"best_step": 7})
    assert compared(run_main, tmp_path, base, run)  # a report of step 7, with no digest, as older versions wrote it
    report = json.loads((run / "eval/test.json").read_text(encoding="utf-8"))
    for digest in (read_manifest(kept).digest, "ab" * 32):
        (run / "eval/test.json").write_text(json.dumps(report | {"checkpoint": digest}))
        if digest != "ab" * 32:
            assert compared(run_main, tmp_path, base, run)
    refuses(main, "eval/test.json is of another model: it scores step 7, and decoding.checkpoint=best", base, run)
    (run / "eval/test.json").write_text(json.dumps(report))
    save(run, state._replace(step=state.step + 9), {"best_step": 9})
    refuses(main, "it scores step 7, and decoding.checkpoint=best of", base, run)
    refuses(main, "is now step 9: evaluate", base, run / "eval/test.json")  # by its path, too
    shutil.rmtree(run / "checkpoints")
    files = {split: [{"sha256": "cd" * 32}] for split in ("train", "valid", "test")}
    facts = {"tokenizer": {"sha256": "t"}, "fingerprint": "f", "files": files, "training_pairs": 9}
    (run / "data.json").write_text(json.dumps(facts))
    refuses(main, f"eval/test.json scores another set than the test set of {run}: evaluate", base, run)


@pytest.mark.slow
def test_what_cannot_be_compared(runs, make_run, tmp_path, refuses):
    refuses(main, "RUN", runs[0])
    refuses(main, "is not a run directory", runs[0], tmp_path / "nothing")
    refuses(main, "/eval/valid.json is missing or damaged", *runs, "--set", "valid")
    refuses(main, "is a folder; name a file", *runs, "--json", tmp_path)
    other_set = make_run("other-set", 0.3, 3, file=SourceReport("other.tsv", "cd" * 32, 40))
    refuses(main, "the test set differs", runs[0], other_set)
    copy = shutil.copytree(runs[0], tmp_path / "copy")
    refuses(main, "do not differ, not even in training.seed", runs[0], copy)
    report = json.loads((runs[2] / "eval/test.json").read_text(encoding="utf-8"))
    (runs[2] / "eval/test.json").write_text(json.dumps(report | {"signature": "nrefs:1|tok:none"}))
    refuses(main, "the signature of BLEU differs", runs[0], runs[2])
    (runs[2] / "eval/test.json").write_text(json.dumps(report | {"bleu": report["bleu"] + 1}))
    refuses(main, "do not belong together: evaluate the run again", runs[0], runs[2])
    for damage in ({"bleu": "high"}, {"decoding": "beam"}):
        (runs[2] / "eval/test.json").write_text(json.dumps(report | damage))
        refuses(main, "test.json is damaged: evaluate", runs[0], runs[2])
    (runs[3] / "eval/test.jsonl").write_text("{}\n")
    refuses(main, "test.jsonl:1: damaged", runs[0], runs[3])
    (runs[3] / "eval/test.jsonl").unlink()
    refuses(main, "test.jsonl is missing, as in runs of older versions: evaluate", runs[0], runs[3])
    (runs[3] / "eval/test.json").unlink()
    refuses(main, f"test.json is missing or damaged: python eval.py {runs[3]}", runs[0], runs[3])
