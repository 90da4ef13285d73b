"""The mutations fit the code that they break; tests/mutations.py tries them."""

from common.programs import ROOT
from tests.mutations import Mutation, draw, is_slow, read_mutations


def fits(mutation: Mutation) -> bool:
    file, _, name = mutation.test.partition("::")
    has_place = (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    return has_place and mutation.new != mutation.old and f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def test_each_place_is_there_once_and_its_test_is_there():
    assert [mutation for mutation in read_mutations() if not fits(mutation)] == []


def test_each_commit_draws_fast_tests():
    drawn = [draw(read_mutations(), 10, commit) for commit in ("a1b2", "a1b2", "a1b3")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert not any(is_slow(mutation.test) for mutation in drawn[0])
