"""An untrained run, and runs with translations of a known quality."""

from pathlib import Path

import pytest

from configs.load import load_config, save_config
from data.sources.report import SourceReport
from evaluation.evaluate import Evaluation
from evaluation.metrics import score
from evaluation.report import Checkpoint, ReportKey, write_report
from tests.evaluation.comparison.systems import drawn_set, noisy
from tests.prepared import save_untrained

SET = SourceReport("test.tsv", "ab" * 32, 40)
SENTENCES = drawn_set(40)


@pytest.fixture(scope="session")
def run_dir(small_experiment) -> Path:
    return save_untrained(load_config(small_experiment, [f"run_dir={small_experiment.parent / 'run'}"]))


@pytest.fixture
def make_run(tmp_path, small_experiment):
    """``make_run(name, rate, noise, override, …)``: a run whose translations have wrong words at this rate.

    With ``sentences``, its report has these as they are.
    """

    def make_run(name, rate, noise, *overrides, file=SET, report="test", sentences=None):
        run = tmp_path / name
        config = load_config(small_experiment, [f"run_dir={run}", *overrides])
        run.mkdir(parents=True, exist_ok=True)
        if not (run / "config.yaml").exists():
            save_config(config, run / "config.yaml")
        sentences = sentences or noisy(SENTENCES, rate, noise)
        scores = score([each.translation for each in sentences], [each.references for each in sentences])
        evaluation = Evaluation(sentences, scores, 1.0)
        key = ReportKey(file.sha256, decoding=config.decoding)
        write_report(run / f"eval/{report}.json", evaluation, Checkpoint(7, ""), file, key)
        return run

    return make_run
