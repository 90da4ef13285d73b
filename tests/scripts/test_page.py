"""python scripts/page.py RUN [RUN2] FILE.html, as a user calls it."""

import base64
import json
import re

import numpy as np

from configs.load import load_config
from experiment.load_run import load_run
from scripts import page
from tests.prepared import save_untrained


def embedded(text, name):
    [found] = re.findall(rf'<script type="[^"]*" id="{name}">([^<]*)</script>', text)
    return found


def test_the_page_of_a_run_of_both_directions(run_dir, small_experiment, tmp_path, run_main):
    changes = [f"run_dir={tmp_path / 'both'}", "data.direction=both"]
    both = save_untrained(load_config(small_experiment, changes))
    code, out, err = run_main(page.main, both, run_dir, tmp_path / "page.html", "--bits=32")
    assert (code, err) == (0, "") and out.startswith(f"written  {tmp_path / 'page.html'}: ")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    facts, other = json.loads(embedded(text, "runs"))
    assert [each["target"] for each in facts["directions"]] == ["es", "en"]
    assert [facts["tokenizer"]["pieces"][each["tag"][0]] for each in facts["directions"]] == ["<2es>", "<2en>"]
    assert other["directions"][0]["tag"] == []
    run = load_run(both)
    content = base64.b64decode(embedded(text, "weights0"))
    places = {each["name"]: each for each in facts["parameters"]}
    assert len(content) == 4 * sum(array.size for array in map(np.asarray, leaves(run.params[0])))
    place = places["decoder.0.feed_forward.up.kernel"]
    found = np.frombuffer(content, "<f4", np.prod(place["shape"]), place["start"]).reshape(place["shape"])
    np.testing.assert_array_equal(found.T, run.params[0]["decoder"][0]["feed_forward"]["up"]["kernel"])


def leaves(tree):
    return [leaf for each in tree.values() for leaf in leaves(each)] if isinstance(tree, dict) else [tree]


def test_mistakes_end_in_one_line_and_code_2(run_dir, refuses, tmp_path):
    file = tmp_path / "page.html"
    mistakes = {
        "a page holds one run or two, not 3": [run_dir, run_dir, run_dir, file],
        "is not a run directory": [tmp_path / "none", file],
        "invalid choice: 9": [run_dir, file, "--bits=9"],
        "required: FILE.html": [run_dir],
        "evaluate the run again": [run_dir, file, "--heads"],
    }
    for message, arguments in mistakes.items():
        refuses(page.main, message, *arguments)
        assert not file.exists()
