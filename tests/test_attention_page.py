"""docs/attention.md: every line of code on the page prints what the page says."""

import doctest
import re

import jax
import pytest

from common.programs import ROOT

PAGE = ROOT / "docs/attention.md"
NUMBER = re.compile(r"-?\d+\.\d*")


class ToTheLastDigitShown(doctest.OutputChecker):
    """Spaces do not count, and the last digit may be one off: other machines round otherwise."""

    def check_output(self, want, got, optionflags):
        words = [NUMBER.sub("number", re.sub(r"\s+", "", text)) for text in (want, got)]
        return words[0] == words[1] and all(
            float(found) == pytest.approx(float(shown), abs=1.01 * 10.0 ** -len(shown.partition(".")[2]))
            for shown, found in zip(*map(NUMBER.findall, (want, got)), strict=True)
        )


@pytest.mark.slow
def test_the_page_prints_what_it_says():
    code = "".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    page = doctest.DocTestParser().get_doctest(code, {}, PAGE.name, str(PAGE), 0)
    assert len(page.examples) > 80
    with jax.default_matmul_precision("float32"):
        found = doctest.DocTestRunner(ToTheLastDigitShown(), verbose=False).run(page)
    assert found.failed == 0
