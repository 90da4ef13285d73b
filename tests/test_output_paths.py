"""No name that comes from data, a config or a command line leads a program to write outside of its run directory."""

import os

import pytest

from common.errors import UserError
from common.files import write_atomically
from configs.load import load_config
from evaluation.attention_view.sentence import slug
from evaluation.report import ReportKey, ReportPlace, name_of_source, translations_beside

NAMES = r"../../x /etc/x .. ../.. a/b NAME:..:.. a/.. x:../../y:/etc . ~ -rf a\..\b …".split()


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}.tsv.gz" for name in NAMES)])
def test_a_report_stays_in_its_folder_whatever_the_set_is_called(tmp_path, name):
    report = ReportPlace(tmp_path / "run/eval", name_of_source(name), ReportKey()).choose()
    for path in (report, translations_beside(report)):
        write_atomically(path, "x")
        assert os.path.realpath(path.parent) == os.path.realpath(tmp_path / "run/eval")
    assert sorted(os.listdir(tmp_path)) == ["run"] and os.listdir(tmp_path / "run") == ["eval"]
    assert len(os.listdir(tmp_path / "run/eval")) == 2


@pytest.mark.parametrize("sentence", [*NAMES, "x" * 5000, "a\0b", "\ud800", "\n../x", "%2e%2e/", "C:\\x"])
def test_a_sentence_gives_a_name_of_letters_digits_and_hyphens(sentence):
    if "\ud800" in sentence:  # refused before it is drawn
        with pytest.raises(UnicodeEncodeError):
            slug(sentence)
        return
    assert set(slug(sentence)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(slug(sentence)) <= 50


@pytest.mark.parametrize("name", [*NAMES, "", "a\0b", "a\nb", "ñ", ".hidden"])
def test_an_average_is_called_by_a_plain_name_or_not_at_all(tmp_path, name):
    (tmp_path / "plain.yaml").write_text("training: {steps: 1}\n")
    with pytest.raises(UserError, match=r"decoding\.checkpoint must be "):
        load_config(tmp_path / "plain.yaml", [f"decoding.checkpoint={name}"])
