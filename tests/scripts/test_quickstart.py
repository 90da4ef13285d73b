"""What `make quickstart` says of a run that is there; the workflow runs it whole."""

import json
import shutil

import pytest

from data.report import SourceReport
from evaluation.evaluate import Evaluation, write_report
from evaluation.metrics import Interval, Scores
from model.config import DecodingConfig
from scripts import quickstart


@pytest.fixture
def finished(run_dir, small_experiment, tmp_path, monkeypatch):
    """A run directory as all steps would leave it."""
    run = tmp_path / "run"
    shutil.copytree(run_dir, run, ignore=shutil.ignore_patterns("eval", "attention"))  # which other tests leave there
    for name, bleu in (("test", 81.25), ("phrasebook.phrases", 14.0)):
        scores = Scores(bleu, "signature", 90.0, "signature", 80.0, "signature", Interval(70.0, 95.0, "signature"))
        evaluation = Evaluation(["a"] * 12, [["b"]] * 12, ["c"] * 12, 0, 0, scores, 1.5, 12)
        file = SourceReport(f"{name}.tsv", "ab" * 32, 12)
        write_report(run, name, evaluation, step=7, file=file, decoding=DecodingConfig())
    (run / "attention").mkdir()
    (run / "attention/a.html").write_bytes(b"")
    monkeypatch.setattr(quickstart, "RUN", run)
    monkeypatch.setattr(quickstart, "CONFIG", str(small_experiment))
    return run


def test_a_finished_run_is_reported_and_nothing_runs_again(finished, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["quickstart.py"])
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("it ran a command"))
    quickstart.main()
    told = " ".join(capsys.readouterr().out.split())
    assert "generated sentences BLEU 81.2, chrF 90.0 on 12 sources" in told
    assert "hand-written phrases BLEU 14.0, chrF 90.0 on 12 sources" in told
    assert str(finished / "attention/a.html") in told


@pytest.mark.parametrize("missing", ["eval/test.json", "eval/phrasebook.phrases.json", "attention/a.html"])
def test_a_run_that_lacks_a_step_is_not_finished(finished, missing):
    assert quickstart.is_done()
    (finished / missing).unlink()
    assert not quickstart.is_done()


def test_a_run_of_another_experiment_is_not_this_one(finished, small_experiment, tmp_path, monkeypatch):
    changed = json.loads(small_experiment.read_text()) | {"training": {"steps": 11}}
    (tmp_path / "changed.yaml").write_text(json.dumps(changed))
    monkeypatch.setattr(quickstart, "CONFIG", str(tmp_path / "changed.yaml"))
    assert not quickstart.is_done()


def test_a_step_that_fails_is_the_last(finished, monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", ["quickstart.py"])
    monkeypatch.setattr(quickstart, "CONFIG", "configs/absent.yaml")
    (finished / "eval/test.json").unlink()
    with pytest.raises(SystemExit) as ended:
        quickstart.main()
    assert ended.value.code == 2
    told = capfd.readouterr()
    assert told.out.splitlines() == ["", "$ python train.py configs/absent.yaml"]
    assert told.err.startswith("error: there is no config file configs/absent.yaml")
