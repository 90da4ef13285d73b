"""The page in a browser: what a reader does with it, by mouse and keyboard, from disk and under its policy."""

import json
from dataclasses import replace

import pytest

from evaluation.faithfulness.heads import Head
from evaluation.page.pack import Cost, pack_run
from evaluation.page.page import render_live_page
from tests.evaluation.page.browser import browser

HOSTILE = "</script><script>document.title='broken'</script>$policy"
READY = "document.querySelector('.panel') && !document.querySelector('[aria-busy=true]')"
TRANSLATION = "document.querySelector('.translation').textContent"
LINE = "Tom runs here."


@pytest.fixture(scope="module")
def page(translator, params, tmp_path_factory):
    """A page of two runs, of which one has a name that would be a script, in a browser that shows it from disk."""
    folder = tmp_path_factory.mktemp("page")
    there, back = replace(translator, source="en", target="es"), replace(translator, source="es", target="en")
    costs = [Cost(Head("decoder", "cross_attention", 0, head), -1.5 * head, 0.25) for head in range(2)]
    runs = [pack_run(name, [there, back], "unigram", params[0], 32, costs) for name in (HOSTILE, "other")]
    (folder / "page.html").write_text(render_live_page(runs), encoding="utf-8")
    with browser(folder) as page:
        page.open((folder / "page.html").as_uri())
        page.wait(READY)
        yield page
        assert page.problems == []


def type_line(page, line):
    page.run(f"line.value = {json.dumps(line)}; line.dispatchEvent(new Event('input'))")
    page.wait(READY)


def test_names_are_text(page):
    assert page.run("document.title") == f"{HOSTILE} and other"
    assert page.run("document.querySelector('h1').textContent") == f"{HOSTILE} and other"


def test_a_typed_sentence_has_the_translation_of_the_search(page, translator, params):
    type_line(page, LINE)
    page.run("beam.value = '2'; beam.dispatchEvent(new Event('change'))")
    expected = translator.translate(params, [LINE])[0].text
    page.wait(f"{TRANSLATION} === {json.dumps(expected)}")
    type_line(page, "")
    assert page.run(f"[{TRANSLATION}, document.querySelectorAll('.uses canvas').length]") == ["", 0]


def test_a_head_is_cut_an_alternative_taken_and_a_link_restores_both(page):
    type_line(page, LINE)
    before = page.run(TRANSLATION)
    page.run("document.querySelectorAll('.costs button')[1].click()")
    page.wait("document.querySelector('.undo')?.textContent.includes('encoder-decoder attention, layer 1, head 2')")
    page.wait(READY)
    told = page.run("document.querySelector('.before').textContent")
    assert before in told or told == "the translation stays as it was"
    page.run("document.querySelectorAll('.chips')[1].children[0].click()")
    second = page.run("document.querySelectorAll('.alternatives button')[1].textContent").split(" ")[0]
    page.run("document.querySelectorAll('.alternatives button')[1].click()")
    first = "document.querySelectorAll('.chips')[1].children[0].firstChild.textContent"
    page.wait(f"{first} === {json.dumps(second)}")
    restored = page.run("[location.hash, " + TRANSLATION + "]")
    page.run("location.hash = '#s=Ana'")
    page.wait("!document.querySelector('.undo')")
    page.run(f"location.hash = {json.dumps(restored[0])}")
    page.wait(f"{READY} && document.querySelectorAll('.undo').length === 2")
    assert page.run(first) == second
    assert page.run("location.hash") == restored[0] and page.run(TRANSLATION) == restored[1]


def test_a_broken_link_shows_the_usual_page(page):
    wrong = "b=99&u=x&cut0=a.b.1.2&heads0=9.9+-5.1&prefix0=9999+1&weight0=x:2&cell0=7+7+7&choice0=x"
    page.run(f"location.hash = '#s=Tom&{wrong}'")
    page.wait(f"line.value === 'Tom' && {READY} && !document.querySelector('.undo')")
    assert page.run("beam.value") == "2"


def test_the_keyboard_reaches_a_cell_and_its_numbers(page):
    type_line(page, LINE)
    page.run("document.querySelectorAll('.use')[2].querySelector('.small button').click()")
    page.run("document.querySelectorAll('.use')[2].querySelector('.map td[tabindex=\"0\"]').focus()")
    page.press("ArrowRight", "ArrowDown", "Enter")
    page.wait("document.querySelector('.cell h3')")
    pieces = page.run("[...document.querySelectorAll('.chips')[0].children].map((chip) => chip.textContent)")
    title = page.run("document.querySelector('.cell h3').textContent")
    assert title.startswith("One weight: encoder-decoder attention, layer 1, head 1, ") and title.endswith(pieces[1])
    weight = page.run("document.querySelectorAll('.use')[2].querySelector('output').textContent").split(": ")[1]
    assert weight in page.run("document.querySelector('.cell').textContent")


def test_measures_words_and_theme_redraw_the_maps(page):
    type_line(page, LINE)
    pixels = "document.querySelectorAll('.use')[2].querySelector('canvas').toDataURL()"
    for name, value in (("measure", "norms"), ("measure", "shifted"), ("units", "words")):
        drawn = page.run(pixels)
        page.run(f"{name}.value = '{value}'; {name}.dispatchEvent(new Event('change'))")
        page.wait(f"{pixels} !== {json.dumps(drawn)}")
    drawn = page.run(pixels)
    page.run("theme.click()")
    page.wait(f"{pixels} !== {json.dumps(drawn)}")
    page.run("measure.value = 'gradient'; measure.dispatchEvent(new Event('change'))")
    page.wait("document.querySelectorAll('.use')[2].querySelector('output')?.textContent.includes('the whole model')")


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_cut_on_phone_or_desktop(page, width):
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    type_line(page, LINE)
    assert page.run("document.documentElement.scrollWidth") <= width
