"""The scripts of pages are typed, and neither they nor styles can make a page other than it is."""

import shutil
import subprocess

import pytest

from common.programs import ROOT

MAPS, REPORT = "evaluation/attention_view/maps.js", "experiment/report"
PAGES = [
    [MAPS, "evaluation/attention_view/page.js"],
    [MAPS, *(f"{REPORT}/{n}.js" for n in "charts sentences report".split())],
    ["evaluation/page/*.js"],
]
OPTIONS = "--noEmit --allowJs --checkJs --strict --target es2022 --lib es2022,dom,dom.iterable".split()
ROOMS, ENDINGS = ("common", "evaluation", "experiment"), ("css", "html", "js")
FILES = [path for room in ROOMS for ending in ENDINGS for path in (ROOT / room).rglob(f"*.{ending}")]
FORBIDDEN = (
    "innerHTML outerHTML insertAdjacentHTML document.write setHTML eval( Function( url( @import onclick <!--".split()
)


@pytest.mark.slow
@pytest.mark.parametrize("scripts", PAGES)
def test_types_of_scripts_agree(scripts):
    if shutil.which("tsc") is None:
        pytest.skip("TypeScript's tsc is not installed")
    files = [str(path) for name in scripts for path in sorted(ROOT.glob(name))]
    command = ["tsc", *OPTIONS, "common/page/base.js", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_writes_html_loads_another_or_ends_its_element(path):
    ending = [] if path.suffix == ".html" else ["</"]
    assert not [word for word in [*FORBIDDEN, *ending] if word in path.read_text(encoding="utf-8")]
