"""The list of mutations fits the code that it breaks; tests/mutations.py tries them."""

from pathlib import Path

import pytest

from tests.mutations import MUTATIONS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.promise)
def test_its_place_is_there_once_and_its_test_is_there(mutation):
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert mutation.new != mutation.old
    file, _, name = mutation.test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
