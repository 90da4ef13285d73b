"""No value of the config falls through to another's code: what is not handled raises.

A name that the config allows and the code does not know would otherwise train with some default, to the last digit.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from configs.keys import KEYS
from tests.test_imports import ROOMS, ROOT

CHOICES = {name: key.metadata["choices"] for name, key in KEYS.items() if key.metadata["choices"]}
# Dtypes are compared with those of arrays; "none" turns something off, and has no other code.
WORDS = {word for key, words in CHOICES.items() for word in words if not key.endswith("dtype")} - {"none"}
THAT_COMPUTE = ROOMS - {"benchmarks", "exports", "configs", "cli"}


def is_closed(match: ast.Match) -> bool:
    """Whether the last case takes everything that is left, and raises."""
    last = match.cases[-1]
    ending = last.body[-1]
    takes_all = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
    never = isinstance(ending, ast.Expr) and ast.unparse(ending).startswith("assert_never(")
    return takes_all and (never or isinstance(ending, ast.Raise))


def alternatives(tree: ast.AST) -> Iterator[str]:
    """Questions for a word of the config's choices, by ``if``, whose ``else`` is for all other words."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) or (isinstance(node, ast.If) and node.orelse):
            for compared in (each for each in ast.walk(node.test) if isinstance(each, ast.Compare)):
                sides = (compared.left, *compared.comparators)
                values = chain.from_iterable(getattr(side, "elts", [side]) for side in sides)  # also of "in (…)"
                if WORDS & {side.value for side in values if isinstance(side, ast.Constant)}:
                    yield ast.unparse(compared)


def lookups_with_default(tree: ast.AST) -> Iterator[str]:
    """``table.get(config.score, …)`` and its like."""
    names = {key.partition(".")[2] for key in CHOICES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Attribute) and first.attr in names:
                yield ast.unparse(node)


def modules(rooms: Iterable[str] = (*ROOMS, "scripts")) -> list[Path]:
    """The project's own modules, without the tests."""
    of_rooms = (path for room in rooms for path in (ROOT / room).rglob("*.py"))
    return sorted([*ROOT.glob("*.py"), *of_rooms])


def parse(path: Path) -> tuple[str, ast.Module]:
    return path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", [key for key in CHOICES if key.startswith(("model.", "training."))])
def test_the_page_of_variants_names_every_choice(key):
    section, _, name = key.partition(".")
    page = (ROOT / "docs" / "variants.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if re.match(rf"\| (`[\w.]+`, )*`({section}\.)?{name}`", line))
    assert [word for word in CHOICES[key] if f"`{word}`" not in row] == []


@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith(("model.", "training."))])
def test_the_documentation_has_a_word_on_every_key_of_model_and_training(key):
    name = key.partition(".")[2]
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", pages), f"docs/ has no `{key}`"


def test_the_code_reads_every_key():
    """One that no code reads would change nothing, silently."""
    read = set(attributes_read())
    assert sorted(key for key in KEYS if key.rpartition(".")[2] not in read) == []


def attributes_read() -> Iterator[str]:
    """Names of attributes that the rooms read, but for the rules of configs; benchmarks train nothing."""
    for file, tree in map(parse, modules()):
        of_config = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        parts = [each for each in of_config if each.name != "__post_init__"] if file.endswith("config.py") else [tree]
        nodes = chain.from_iterable(map(ast.walk, [] if file.startswith("benchmarks/") else parts))
        yield from (node.attr for node in nodes if isinstance(node, ast.Attribute))


def test_every_match_ends_with_a_case_that_raises():
    seen = 0
    for file, tree in map(parse, modules()):
        for node in ast.walk(tree):
            if isinstance(node, ast.Match):
                seen += 1
                assert is_closed(node), f"{file}:{node.lineno}: end it with `case _:` and an error"
    assert seen > 8


def test_no_else_is_for_the_choices_that_are_left():
    found = [(file, text) for file, tree in map(parse, modules(THAT_COMPUTE)) for text in alternatives(tree)]
    assert found == [], "use `match` with a last case that raises"


def test_no_lookup_of_a_choice_has_a_default():
    assert [(file, text) for file, tree in map(parse, modules()) for text in lookups_with_default(tree)] == []


def test_the_check_sees_a_lookup_with_a_default():
    assert list(lookups_with_default(ast.parse("f = {'general': g}.get(config.score, h)")))
