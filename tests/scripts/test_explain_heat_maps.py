"""python scripts/explain_heat_maps.py RUN, with random parameters, whose own translations are the references."""

import shutil

import pytest
from matplotlib.image import imread

from data.sources.report import SourceReport
from evaluation.evaluate import Evaluation
from evaluation.faithfulness.heads import heads_of
from evaluation.metrics import score
from evaluation.report import Checkpoint, ReportKey, write_report
from evaluation.sentences import Sentence
from experiment.load_run import load_run
from scripts.explain_heat_maps import CHANGES, main
from tests.conftest import WORDS

SOURCES = [" ".join(WORDS[start : start + 5]) + "." for start in range(0, 60, 5)]


@pytest.fixture(scope="module")
def loaded(run_dir, tmp_path_factory):
    run_dir = shutil.copytree(run_dir, tmp_path_factory.mktemp("heat-maps") / "run")
    run = load_run(run_dir, CHANGES)
    texts = [each.text for each in run.translator.translate(run.params, SOURCES)]
    parts = zip(SOURCES, texts, strict=True)
    sentences = [Sentence(source, [text], text, [], 0.0, 0.0, True, 1) for source, text in parts]
    evaluation = Evaluation(sentences, score(texts, [[text] for text in texts]), 1.0)
    where, checkpoint = run_dir / "eval/valid.json", Checkpoint(0, "")
    write_report(where, evaluation, checkpoint, SourceReport("valid", "ab", 12), ReportKey())
    return run


@pytest.mark.slow
def test_tables_and_a_figure(loaded, run_main, tmp_path):
    code, out, err = run_main(main, loaded.folder, "--sentences", 5, "--output", tmp_path / "figure.png")
    assert (code, err) == (0, "") and "Over 5 sentences" in out
    erasure, heads = (part.splitlines()[3:] for part in out.split("\n\n")[:2])
    assert [line.split("  ")[0] for line in erasure] == ["rollout", "gradient × input", "nearness of places"] + [
        f"layer 1, {what}" for what in ("mean of heads", "norms", "head 1", "head 2")
    ] + ["hidden from attention"]
    assert [line.split("  ")[0] for line in heads] == [head.attention for head in heads_of(loaded.config.model)]
    assert imread(tmp_path / "figure.png").shape[1] > 1000


def test_without_a_report_there_is_one_line(run_dir, refuses):
    refuses(main, "eval/valid.jsonl cannot be read", run_dir)
