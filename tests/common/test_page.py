"""One file has all of a page; what is written into it stays text, and its policy allows its one style and script."""

import base64
import hashlib
import json

import pytest

from common.page.page import SCRIPT, STYLE, embed, embed_bytes, fill, render_page
from tests.payloads import PAYLOADS, RUN, Parsed, assert_harmless, in_browser

EVERYTHING = " ".join(PAYLOADS)


@pytest.fixture
def page():
    body = fill("<h1>$first</h1><p title='$second'>$second</p>", first=EVERYTHING, second=PAYLOADS[6])
    return render_page(EVERYTHING, body, "p {}", ["byId('d');"], [embed("d", PAYLOADS), embed_bytes("b", b"\0<")])


def test_hostile_text_stays_text(page):
    parsed = assert_harmless(page, EVERYTHING)
    assert parsed.texts("title") == parsed.texts("h1") == [EVERYTHING]
    assert [attributes for tag, attributes, _ in parsed.elements if tag == "p"] == [{"title": PAYLOADS[6]}]
    data, binary, script = parsed.texts("script")
    assert json.loads(data) == PAYLOADS and not set(data) & set("<>&\u2028") and base64.b64decode(binary) == b"\0<"
    assert script == f"{SCRIPT}byId('d');" and parsed.texts("style") == [f"{STYLE}p {{}}"]


def test_what_utf8_lacks_is_a_question_mark():
    page = render_page("a\udce9b", fill("<h1>$x</h1>", x="\ud800"), "", [], [embed("d", "\ud800")])
    assert Parsed(page.encode().decode()).texts("title") == ["a?b"]
    with pytest.raises(ValueError, match="Out of range"):
        embed("d", float("nan"))


def test_the_policy_allows_this_style_and_script_alone(page):
    (policy,) = [attributes["content"] for _, attributes, _ in Parsed(page).elements if "http-equiv" in attributes]
    codes = [f"{STYLE}p {{}}", f"{SCRIPT}byId('d');"]
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes]
    allowed = [f"{kind}-src 'sha256-{digest}'" for kind, digest in zip(("style", "script"), hashes, strict=True)]
    assert policy.split("; ") == ["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"]
    assert '; worker-src blob:"' in render_page("", "", "", [], [], ["worker-src blob:"])


@pytest.mark.slow
def test_a_browser_runs_none_of_it_even_where_it_is_no_text(page, tmp_path):
    """And it would, in a page without a policy."""
    assert_harmless(in_browser(page, tmp_path), EVERYTHING)
    assert 'data-ran="1"' in in_browser(f"<!doctype html><p>{PAYLOADS[4]}", tmp_path)
    for payload in PAYLOADS[:9]:
        assert "data-ran" not in in_browser(render_page("", payload, "", [], []), tmp_path).replace(RUN, "")


@pytest.mark.slow
def test_the_button_changes_the_theme_and_the_colours_of_weights(tmp_path):
    """Weight 0 is magma's lightest colour on light paper, and its darkest on dark paper."""
    script = """
    const show = () => byId("out").append(`${heat(0)} ${heat(1)} ${getComputedStyle(document.body).backgroundColor}; `);
    whenThemeChanges(show);
    if (isDark()) byId("theme").click(); else show();
    byId("theme").click();
    """
    drawn = Parsed(in_browser(render_page("", '<p id="out"></p>', "", [script], []), tmp_path))
    light, dark = "rgb(252 253 191)", "rgb(0 0 4)"
    assert drawn.texts("p") == [f"{light} {dark} rgb(255, 255, 255); {dark} {light} rgb(23, 22, 27); "]
