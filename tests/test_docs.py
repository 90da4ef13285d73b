"""What the documentation names exists: files, folders, links, headings, programs, and the code in README.md."""

import re
from pathlib import Path

from tests.test_imports import tracked

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

FILES = [path.relative_to(ROOT) for path in tracked()]
FOLDERS = {parent for file in FILES for parent in file.parents}
ROOMS = {file.parts[0] for file in FILES if len(file.parts) > 1}
NAMES = {path.name for path in [*FILES, *FOLDERS]}
OF_A_RUN = {"runs", "checkpoints", "averages", "held_out"}  # folders that training makes
CODE_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def prose_of(page: Path) -> str:
    return CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))


def code_of(page: Path) -> str:
    """Inline code and code blocks."""
    return "\n".join([*re.findall(r"`([^`]+)`", prose_of(page)), *CODE_BLOCK.findall(page.read_text(encoding="utf-8"))])


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def is_there(word: str) -> bool:
    """Whether a word that may be a path is one: in a room, a folder's name with its slash, or a program's name."""
    path = Path(word)
    if re.search(r"[A-Z]{2}", word):  # configs/NAME.yaml stands for any
        return True
    if len(path.parts) > 1:
        return path in FOLDERS or path in FILES or not (path.parts[0] in ROOMS or word.endswith(".py"))
    return path.name in NAMES | OF_A_RUN or not word.endswith(("/", ".py"))


def test_paths_in_code_are_there():
    words = {(page.name, word) for page in PAGES for word in re.findall(r"[\w.-]+(?:/[\w.-]+)*/?", code_of(page))}
    assert [(page, word) for page, word in words if not is_there(word)] == []


def test_links_lead_to_files_and_headings():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not link.startswith("https://"):
                assert target.relative_to(ROOT) in FOLDERS | set(FILES), (page, link)
                assert not anchor or anchor in anchors_of(target), (page, link)


def test_commands_run_programs_that_are_there():
    for page in PAGES:
        code = code_of(page)
        modules = [f"{name.replace('.', '/')}.py" for name in re.findall(r"python -m (tests[\w.]*)", code)]
        for program in [*modules, *re.findall(r"python ([\w./-]+\.py)", code)]:
            assert (ROOT / program).is_file(), (page, program)


def test_every_page_is_reached_from_the_readme():
    linked = re.findall(r"\]\(([^)\s]+\.md)\)", prose_of(README))
    assert {ROOT / name for name in linked} == set(PAGES) - {README}


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 160


def test_the_readme_quotes_attend_head_as_it_is():
    [quoted] = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert quoted.startswith("def attend_head(")
    assert quoted in (ROOT / "attention/head.py").read_text(encoding="utf-8")


def test_a_path_that_is_gone_is_seen():
    assert not any(map(is_there, ["model/search.py", "utils/files.py", "gone/", "gone.py"]))
