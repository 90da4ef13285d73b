"""One letter per axis, with one meaning: legends and shapes agree with the glossary in attention/__init__.py."""

import ast
import re
from collections.abc import Iterator

import attention
from common.programs import ROOT

ROOMS = ("attention", "model", "data", "training", "evaluation", "benchmarks", "scripts")
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
ENTRY = re.compile(r"(?<!\S)([A-Z])  +(\S+(?: \S+)*)")  # B  batch row
LEGEND = re.compile(r"[A-Z] [^·]+ · [A-Z] ")  # B batch row · T target position

GLOSSARY = {
    letter: meaning
    for line in (attention.__doc__ or "").splitlines()
    if line.startswith("    ")
    for letter, meaning in ENTRY.findall(line)
}


def legends(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Letters and meanings of the legend in a module's docstring."""
    for paragraph in (ast.get_docstring(tree) or "").split("\n\n"):
        if LEGEND.match(paragraph):
            for entry in " ".join(paragraph.split()).replace(" / ", "/").split(" · "):
                letter, _, meaning = entry.partition(" ")
                if letter.isupper():
                    yield letter, meaning


def agree(meaning: str, entry: str) -> bool:
    """Whether one begins with the other; "query (target) position" is also "query position" and "target position"."""
    wordings = meaning, re.sub(r" \(\w+\)", "", meaning), re.sub(r"\w+ \((\w+)\)", r"\1", meaning)
    return any(entry.startswith(wording) or wording.startswith(entry.rstrip(".")) for wording in wordings)


def axes(tree: ast.Module) -> Iterator[str]:
    """Single capital letters in jaxtyping's shapes: Float[Array, "B T"]."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            for element in node.slice.elts[1:]:
                if isinstance(element, ast.Constant) and isinstance(element.value, str):
                    yield from re.findall(r"(?<![\w.])[A-Z](?!\w)", element.value)


def test_the_glossary_has_every_letter_once():
    assert "".join(sorted(GLOSSARY)) == "BCDEFGHJKLMNPRSTUV"
    assert len(set(GLOSSARY.values())) == len(GLOSSARY)


def test_legends_and_shapes_agree_with_the_glossary():
    for path in FILES:
        tree, file = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT)
        for letter, meaning in legends(tree):
            assert letter in GLOSSARY, f"{file}: the glossary has no {letter} {meaning}"
            assert agree(GLOSSARY[letter], meaning), f"{file}: {letter} is {GLOSSARY[letter]}, not {meaning}"
        assert set(axes(tree)) <= GLOSSARY.keys(), file
