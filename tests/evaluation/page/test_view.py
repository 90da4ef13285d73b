"""The page in a browser: what a reader does with it, by mouse and keyboard, from disk and under its policy."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.faithfulness.heads import Head
from evaluation.page.pack import Cost, PackedRun, pack_run
from evaluation.page.page import render_live_page
from evaluation.report import sentences_beside
from evaluation.sentences import read_sentences
from experiment.load_run import load_run
from scripts.page import CHANGES
from tests.evaluation.page.node import rounded
from tests.payloads import AXE, find_browser
from training.run.layout import report_path

READER = Path(__file__).with_name("browse.js")
HOSTILE = "</script><script>document.title='broken'</script>$policy"
LINE = "Tom runs here."


@pytest.mark.slow
def test_what_a_reader_does(translator, params, tmp_path):
    """Two runs, of which one has a name that would be a script; browse.js says what happens on their page."""
    there, back = replace(translator, source="en", target="es"), replace(translator, source="es", target="en")
    costs = [Cost(Head("decoder", "cross_attention", 0, head), -1.5 * head, 0.25) for head in range(2)]
    runs = [pack_run(name, [there, back], "unigram", params[0], 32, costs) for name in (HOSTILE, "other")]
    read(runs, f"{HOSTILE} and other", translator, params, [LINE], tmp_path)


@pytest.mark.slow
def test_what_a_reader_does_with_a_trained_run(trained_run, tmp_path):
    """A hundred sentences of its test set, and how long each first word took: pytest -rP shows it."""
    run = load_run(trained_run, CHANGES)
    heads = [Head("decoder", "cross_attention", 0, head) for head in range(4)]
    packed = pack_run("small", [run.translator], "unigram", run.params[0], 8, [Cost(head, 0.0, 0.0) for head in heads])
    lines = [each.source for each in read_sentences(sentences_beside(report_path(trained_run, "test")))[:110]]
    read([packed], "small", run.translator, (rounded(run.params[0], 8),), lines, tmp_path)


def read(runs: list[PackedRun], title: str, translator, params, lines: list[str], folder: Path) -> None:
    """browse.js finds nothing wrong with a page of these runs, whose last line it looks at closely.

    Lines that are translated sentence by sentence are left out: a page does not do this.
    """
    node, chromium = shutil.which("node"), find_browser()
    if node is None:
        pytest.skip("needs Node.js")
    page = folder / "page.html"
    page.write_text(render_live_page(runs), encoding="utf-8")
    translations = zip(lines, translator.translate(params, lines), strict=True)
    expected = [(line, each.text) for line, each in translations if len(each.sources) == 1][:100]
    facts = {"title": title, "beam": str(translator.decoding.beam_size), "axe": str(AXE), "expected": expected}
    command = [node, str(READER), chromium, page.as_uri(), json.dumps(facts)]
    done = subprocess.run(command, capture_output=True, timeout=900, check=False)
    print(f"{page.stat().st_size / 1e6:.1f} MB\n{done.stdout.decode()}")
    assert done.returncode == 0
