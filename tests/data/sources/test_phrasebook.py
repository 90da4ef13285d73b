"""The embedded corpus has the sentences that the grammar made: its digests are those of its tested sets."""

import lzma
from hashlib import sha256

import pytest

from common.errors import UserError
from data.config import DataConfig
from data.sources.phrasebook import TABLE
from data.sources.source import load_source

DIGESTS = {  # those of the grammar's own sets, at commit e994c30, as data.json of earlier runs has them
    "grammar:train": (45886, "c43f6c5ce74b39fb364d9c9746aadb15b415f7b162ff5560b0e2bdd995952a0a"),
    "grammar:valid": (500, "ab3e7797e8e463a04b97c0b78f8e72607a90b960fc401698bce1691f02578392"),
    "grammar:test": (1000, "48051ecdd7e134c8786c324349e2710758a6d06230de6bd98a9198b370d494b3"),
    "phrases:train": (1488, "84ac9591bb8ada6d08b689cca2f19ac15c13ad149e0b58b032424924302eaf2e"),
    "phrases:test": (150, "2a8d1b14127c31c2cde9aa2f830db7cd9473e974ab2d732dab716469df3a0b02"),
}


@pytest.mark.parametrize(("name", "count", "digest"), [(name, *facts) for name, facts in DIGESTS.items()])
def test_each_set_is_the_one_that_the_grammar_made(name, count, digest):
    _, report = load_source(DataConfig(), f"phrasebook:{name}", "train")
    assert (report.file, report.rows, report.sha256) == (f"phrasebook:{name}", count, digest)
    _, part_only = load_source(DataConfig(source="es", target="en"), "phrasebook:" + name.split(":")[0], name[8:])
    assert part_only == report


def test_the_card_states_the_counts_and_the_digest_of_the_table():
    card = TABLE.with_name("phrasebook.md").read_text(encoding="utf-8")
    assert sha256(lzma.decompress(TABLE.read_bytes())).hexdigest() in card
    assert all(f"| `phrasebook:{name}` | {count:,} |" in card for name, (count, _) in DIGESTS.items())


@pytest.mark.parametrize("name", ["", ":words", ":phrases:valid", ":grammar:dev", ":grammar:test:x"])
def test_what_is_not_there_is_refused_with_what_is(name):
    with pytest.raises(UserError, match=r"phrasebook:grammar:test, phrasebook:grammar:train") as caught:
        load_source(DataConfig(), f"phrasebook{name}", "valid")
    assert "\n" not in str(caught.value)


def test_other_languages_are_refused():
    with pytest.raises(UserError, match="columns are en and es"):
        load_source(DataConfig(columns=["en", "fr"], target="fr"), "phrasebook:grammar", "train")
