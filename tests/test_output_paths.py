"""No name that comes from data, a config or a command line leads a program to write outside of its run directory."""

import os
import unicodedata

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


def test_a_sentence_gives_a_short_name_of_letters_digits_and_hyphens_that_no_other_has():
    question = "¿Dónde está la biblioteca?"
    assert slug(question).startswith("donde-esta-la-biblioteca-")
    assert slug(unicodedata.normalize("NFD", question.replace(" ", "  "))) == slug(question)
    near = ["where is it", "where is it?", "Where is it?"]
    odd = [*NAMES, *near, "x" * 5000, "a b c " * 40, "漢", "a\0b", "\n../x", "%2e%2e/", "C:\\x"]
    names = {slug(sentence) for sentence in odd}
    assert len(names) == len(odd) and max(map(len, names)) <= 50
    assert set("".join(names)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    with pytest.raises(UnicodeEncodeError):  # refused before it is drawn
        slug("\ud800")


@pytest.mark.parametrize("name", [*NAMES, "", "a\0b", "a\nb", "ñ", ".hidden"])
def test_an_average_is_called_by_a_plain_name_or_not_at_all(tmp_path, name):
    (tmp_path / "plain.yaml").write_text("training: {steps: 1}\n")
    with pytest.raises(UserError, match=r"decoding\.checkpoint must be "):
        load_config(tmp_path / "plain.yaml", [f"decoding.checkpoint={name}"])
