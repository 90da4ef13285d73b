"""The page in a browser: what a reader does with it, by mouse and keyboard, from disk and under its policy."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.faithfulness.heads import Head
from evaluation.page.pack import Cost, pack_run
from evaluation.page.page import render_live_page
from tests.payloads import AXE, find_browser

READER = Path(__file__).with_name("browse.js")
HOSTILE = "</script><script>document.title='broken'</script>$policy"
LINE = "Tom runs here."


@pytest.mark.slow
def test_what_a_reader_does(translator, params, tmp_path):
    """Two runs, of which one has a name that would be a script; browse.js says what happens on their page."""
    node, chromium = shutil.which("node"), find_browser()
    if node is None:
        pytest.skip("needs Node.js")
    there, back = replace(translator, source="en", target="es"), replace(translator, source="es", target="en")
    costs = [Cost(Head("decoder", "cross_attention", 0, head), -1.5 * head, 0.25) for head in range(2)]
    runs = [pack_run(name, [there, back], "unigram", params[0], 32, costs) for name in (HOSTILE, "other")]
    page = tmp_path / "page.html"
    page.write_text(render_live_page(runs), encoding="utf-8")
    facts = {
        "axe": str(AXE),
        "line": LINE,
        "translation": translator.translate(params, [LINE])[0].text,
        "title": f"{HOSTILE} and other",
    }
    command = [node, str(READER), chromium, page.as_uri(), json.dumps(facts)]
    done = subprocess.run(command, capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout.decode()[-4000:]
