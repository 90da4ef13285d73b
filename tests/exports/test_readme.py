"""What others named, such as a run, a language or a corpus, stands in an export's README as text and nothing else."""

import ast
import json
import subprocess
from string import Template

import pytest
import yaml
from markdown_it import MarkdownIt

from common.errors import UserError
from common.text import visible
from exports.readme import TEMPLATES, describe_data, describe_scores, write_readme

HOSTILE = "<img src=x onerror=alert(1)> [a](http://b) ![c](d) **e** __f__ `g` ~~h~~ <!-- &lt; $(ls) \"j\" 'k' \u202e"
SCORES = {"test_set": "test.tsv", "signature": "s", "chrf_signature": "s", "bleu": 1.0, "chrf": 2.0, "step": 3}
MARKS = "html_inline html_block link_open image em_open strong_open s_open".split()


def readme(folder, form, **facts):
    words = {"example", "tagged", *Template("".join(TEMPLATES.values())).get_identifiers()}
    write_readme(folder, form, dict.fromkeys(words, "x") | facts)
    return (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", ["no", "on", "y", "es", 'e"s', HOSTILE])
def test_codes_of_languages_and_licences_are_text_to_yaml(tmp_path, code):
    head = yaml.safe_load(readme(tmp_path, "hf", source="en", target=code, license_id=code).split("\n---\n")[0])
    assert (head["language"], head["license"]) == (["en", code], code)


@pytest.mark.parametrize("form", TEMPLATES)
def test_names_are_text_to_markdown_to_a_shell_and_to_python(tmp_path, form):
    source = {"file": HOSTILE, "pairs": 7, "sha256": HOSTILE}
    (tmp_path / "data.json").write_text(json.dumps({"files": {"train": [source]}}))
    named = dict.fromkeys(("name", "source", "target", "license", "example", "tagged"), HOSTILE)
    scores = describe_scores(SCORES | dict.fromkeys(("signature", "chrf_signature", "bleu_note"), HOSTILE))
    text = readme(tmp_path, form, data=describe_data(tmp_path), scores=scores, **named)
    tokens = MarkdownIt("commonmark").enable(["strikethrough", "table"]).parse(text.rpartition("\n---\n")[2])
    inline = [child for token in tokens for child in token.children or []]
    assert not {token.type for token in [*tokens, *inline]} & set(MARKS)
    shown = "".join(token.content for token in inline)
    assert shown.count(visible(HOSTILE)) == 9  # four names, a corpus and its digest, two signatures and a note

    code = [line.strip() for token in tokens if token.type == "code_block" for line in token.content.splitlines()]
    shell = next(line for line in code if line.startswith("echo")).removesuffix(" | python translate.py")
    assert subprocess.run(["sh", "-c", shell], capture_output=True, text=True).stdout == f"{visible(HOSTILE)}\n"
    (call,) = [line for line in code if line.startswith("print") and "translate([" in line]
    assert ast.literal_eval(call.partition("translate(")[2].removesuffix("))")) == [HOSTILE]


def test_records_of_other_values_are_refused(tmp_path):
    for files in ("[]", '{"train": [{"file": 5}]}', '{"train": [{"file": "a", "pairs": "many", "sha256": ""}]}'):
        (tmp_path / "data.json").write_text(f'{{"files": {files}}}')
        with pytest.raises(UserError, match=r"data\.json is missing or damaged"):
            describe_data(tmp_path)
    with pytest.raises(UserError, match="the report of the run's scores is damaged"):
        describe_scores(SCORES | {"bleu": "high"})
