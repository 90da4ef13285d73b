"""Texts that would run as script in a page that did not keep them text, and what a browser makes of a page."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest

RUN = "document.documentElement.dataset.ran=1"  # what no page may do
PAYLOADS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title></style></textarea><script>{RUN}</script>",
    f"<!--<script>{RUN}</script>-->",
    f"<img src=x onerror={RUN}>",
    f"\"><svg onload='{RUN}'>",
    f"' onfocus={RUN} autofocus tabindex=1 x='",
    f"<a href=javascript:{RUN}>x</a>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "<style>@import 'data:text/css,*{}';</style><base href='data:,'><link rel=stylesheet href='data:text/css,'>",
    f"&lt;script&gt;{RUN}&lt;/script&gt; &#60;img src=x onerror={RUN}&#62;",
    f"\u2028\u2029`${{{RUN}}}`\\u003cscript>{RUN}\\u003c/script>",
    f"$policy $$ ${{script}} {{script}} ]]> \ufffe <x-{'x' * 300}>",
]
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
VOID = {"meta", "br", "input"}
AXE = resources.files("axe_core_python") / "axe.min.js"  # checks WCAG's rules and good practice
JUDGE = """
(async () => {
  document.querySelectorAll("details").forEach((each) => (each.open = true));
  const problems = [];
  for (const _ of ["one theme", "the other"]) {
    const { passes, violations } = await axe.run();
    problems.push(...(passes.length ? violations : [{ id: "nothing judged", nodes: [] }]));
    byId("theme").click();
  }
  const lines = problems.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  document.body.replaceChildren(element("p", {}, lines.join("\\n")));
})();
"""


class Parsed(HTMLParser):
    """The elements of a page in order, with their attributes and all text below them; every one must be closed."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict, list[str]]] = []
        self.open: list[tuple[str, dict, list[str]]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        element: tuple[str, dict, list[str]] = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def texts(self, wanted):
        return ["".join(text) for tag, _, text in self.elements if tag == wanted]


def assert_harmless(html: str, *seen: str) -> Parsed:
    """No text of a page has become an element, an attribute or a script, and these texts are there."""
    parsed = Parsed(html)
    assert not {tag for tag, _, _ in parsed.elements} & set("img iframe base link form object embed x-x".split())
    names = {name for _, attributes, _ in parsed.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("src", "srcdoc", "action", "data-ran")]
    links = [attributes.get("href", "#") for _, attributes, _ in parsed.elements]
    assert all(link.startswith("#") for link in links)
    for text in map(without_space, seen):
        assert text in without_space(parsed.texts("body")[0])
    return parsed


def without_space(text: str) -> str:
    return "".join(text.split())


def assert_accessible(page: str, folder: Path) -> None:
    """axe-core finds nothing in either theme. The page's policy, which would refuse axe-core itself, is left out."""
    before, after = re.sub("<meta http-equiv=[^>]*>", "", page, count=1).rsplit("</script>", 1)
    judged = f"{before}</script><script>{AXE.read_text(encoding='utf-8')}{JUDGE}</script>{after}"
    assert Parsed(in_browser(judged, folder)).texts("p") == [""]


def find_browser() -> str:
    """The path of Chromium; without it the test is skipped."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no {' or '.join(BROWSERS)} is installed")
    return program


def in_browser(page: str | bytes, folder: Path) -> str:
    """The page as HTML after its scripts have run, by Chromium, which keeps its files in ``folder``."""
    path = folder / "page.html"
    path.write_bytes(page if isinstance(page, bytes) else page.encode())
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = [find_browser(), *options, "--virtual-time-budget=9000", "--dump-dom", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
