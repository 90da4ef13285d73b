"""What `make quickstart` says of a run that is there; the workflow runs it whole."""

import json
import shutil

import pytest

from common.errors import UserError
from evaluation.evaluate import Evaluation
from evaluation.metrics import BleuInterval, Scores
from evaluation.report import write_report
from evaluation.sentences import Sentence
from experiment.load_run import load_run
from experiment.reports import place_report
from scripts import quickstart
from training.run.corpus import load_held_out


@pytest.fixture
def finished(run_dir, small_experiment, tmp_path, monkeypatch):
    """A run directory as all steps would leave it."""
    run = tmp_path / "run"
    shutil.copytree(run_dir, run, ignore=shutil.ignore_patterns("eval", "attention"))  # which other tests leave there
    (tmp_path / "phrases.tsv").write_text("Hello.\tHola.\n", encoding="utf-8")  # building the phrasebook takes seconds
    monkeypatch.setattr(quickstart, "PHRASES", str(tmp_path / "phrases.tsv"))
    for source, bleu in (("", 81.25), (quickstart.PHRASES, 14.0)):
        loaded = load_run(run, [f"data.test={source}"] if source else [], may_change={"data.test"})
        _, file = load_held_out(loaded.config.data, "test", run)
        scores = Scores(bleu, "signature", 90.0, "signature", 80.0, "signature", BleuInterval(70.0, 95.0, 9))
        evaluation = Evaluation([Sentence("a", ["b"], "c", ["␣c"], -0.1, -0.1, True, 1)] * 12, scores, 1.5)
        place = place_report(loaded, file.sha256)
        assert place.checkpoint is not None
        write_report(place.choose(), evaluation, step=place.checkpoint.step, file=file, key=place.key)
    (run / "attention").mkdir()
    (run / "attention/a.html").write_bytes(b"")
    monkeypatch.setattr(quickstart, "RUN", run)
    monkeypatch.setattr(quickstart, "EXPERIMENT", str(small_experiment))
    return run


def test_a_finished_run_is_reported_and_nothing_runs_again(finished, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["quickstart.py"])
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("it ran a command"))
    quickstart.main()
    told = " ".join(capsys.readouterr().out.split())
    assert "generated sentences BLEU 81.2, chrF 90.0 on 12 sources" in told
    assert "hand-written phrases BLEU 14.0, chrF 90.0 on 12 sources" in told
    assert str(finished / "attention/a.html") in told


@pytest.mark.parametrize("missing", ["eval/test.json", "eval/phrases-????????.json", "attention/a.html"])
def test_a_run_that_lacks_a_step_is_not_finished(finished, missing):
    assert quickstart.is_done()
    [file] = finished.glob(missing)
    file.unlink()
    assert not quickstart.is_done()


def test_reports_of_older_versions_are_shown_and_only_those_of_its_own_sets(finished, capsys):
    path = quickstart.find_reports()["hand-written phrases"]
    assert path is not None
    path.rename(finished / "eval/phrases.json")  # as older versions called it
    assert quickstart.is_done()
    own = json.loads((finished / "eval/test.json").read_text())
    (finished / "eval/test.json").write_text(json.dumps(own | {"test_set_sha256": "ab" * 32, "bleu": 3.53}))
    assert not quickstart.is_done()
    with pytest.raises(UserError, match="has no report on its generated sentences; to start over: rm -r"):
        quickstart.report()
    assert "3.5" not in capsys.readouterr().out


def test_a_run_of_another_experiment_is_not_this_one(finished, small_experiment, tmp_path, monkeypatch):
    changed = json.loads(small_experiment.read_text()) | {"training": {"steps": 11}}
    (tmp_path / "changed.yaml").write_text(json.dumps(changed))
    monkeypatch.setattr(quickstart, "EXPERIMENT", str(tmp_path / "changed.yaml"))
    assert not quickstart.is_done()


@pytest.mark.slow
def test_a_step_that_fails_is_the_last(finished, monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", ["quickstart.py"])
    monkeypatch.setattr(quickstart, "EXPERIMENT", "configs/absent.yaml")
    (finished / "eval/test.json").unlink()
    with pytest.raises(SystemExit) as ended:
        quickstart.main()
    assert ended.value.code == 2
    told = capfd.readouterr()
    assert told.out.splitlines() == ["", "$ python train.py configs/absent.yaml"]
    assert told.err.startswith("error: there is no config file configs/absent.yaml")
