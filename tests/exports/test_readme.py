"""The head of a model card is YAML that says what was meant."""

from string import Template

import pytest
import yaml

from exports.readme import COMMON, USE, write_readme


@pytest.mark.parametrize("code", ["no", "on", "y", "es"])
def test_codes_of_languages_that_yaml_takes_for_something_else_are_text(tmp_path, code):
    names = Template(USE["hf"] + COMMON).get_identifiers()
    write_readme(tmp_path, "hf", dict.fromkeys(names, "x") | {"source": "en", "target": code})
    head = yaml.safe_load((tmp_path / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert head["language"] == ["en", code]
