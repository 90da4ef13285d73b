import json
import subprocess
import sys
from pathlib import Path

import pytest

from data.pairs import Pairs
from data.phrasebook.cached import phrasebook
from data.phrasebook.grammar import Sentence

PROGRAM = """
import dataclasses, json
from data.phrasebook.cached import phrasebook
from data.phrasebook.splits import generated
phrasebook()
print(json.dumps([dataclasses.astuple(sentence) for sentence in generated()]))
"""


@pytest.fixture(scope="session")
def sentences() -> list[Sentence]:
    """All sentences of the grammar, from another process, which also fills the phrasebook's cache.

    In this process beartype checks every call, which takes five times as long.
    """
    command, root = [sys.executable, "-c", PROGRAM], Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    return [Sentence(english, spanish, name, tuple(lemmas)) for english, spanish, name, lemmas in rows]


@pytest.fixture(scope="session")
def parts(sentences: list[Sentence]) -> dict[tuple[str, str], Pairs]:
    return phrasebook()
