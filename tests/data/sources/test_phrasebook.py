"""The embedded corpus has the sentences that the grammar made, and holds out what training does not have."""

import lzma
from collections import Counter
from hashlib import sha256

import pytest

from common.errors import UserError
from data.config import DataConfig
from data.pairs import fold
from data.sources.phrasebook import TABLE, phrasebook
from data.sources.source import load_source

DIGESTS = {  # those of the grammar's own sets, at commit e994c30, as data.json of earlier runs has them
    "grammar:train": (45886, "c43f6c5ce74b39fb364d9c9746aadb15b415f7b162ff5560b0e2bdd995952a0a"),
    "grammar:valid": (500, "ab3e7797e8e463a04b97c0b78f8e72607a90b960fc401698bce1691f02578392"),
    "grammar:test": (1000, "48051ecdd7e134c8786c324349e2710758a6d06230de6bd98a9198b370d494b3"),
    "phrases:train": (1488, "84ac9591bb8ada6d08b689cca2f19ac15c13ad149e0b58b032424924302eaf2e"),
    "phrases:test": (150, "2a8d1b14127c31c2cde9aa2f830db7cd9473e974ab2d732dab716469df3a0b02"),
}


@pytest.fixture(scope="module")
def groups() -> dict[str, list[tuple[str, set[str]]]]:
    """The construction and the lemmas of each generated pair, by set."""
    rows = [line.split("\t") for line in lzma.decompress(TABLE.read_bytes()).decode().splitlines()[1:]]
    of_sets = {name: [row[3].split(" × ") for row in rows if row[2] == name] for name in phrasebook()}
    return {
        name: [(construction, set(lemmas.split(", "))) for construction, lemmas in of_sets[name]]
        for name in ("grammar:train", "grammar:valid", "grammar:test")
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


def test_no_held_out_sentence_is_in_another_set_on_either_side():
    for side in (0, 1):
        sentences = {name: {fold(row[side]) for row in rows} for name, rows in phrasebook().items()}
        for held_out in ("grammar:valid", "grammar:test", "phrases:test"):
            for other in sentences.keys() - {held_out}:
                assert not sentences[held_out] & sentences[other], (held_out, other)


@pytest.mark.parametrize("split", ["valid", "test"])
def test_each_held_out_pair_has_a_known_word_in_a_known_construction_where_training_never_has_it(groups, split):
    trained = {(construction, lemma) for construction, lemmas in groups["grammar:train"] for lemma in lemmas}
    known, uses = {lemma for _, lemma in trained}, Counter(construction for construction, _ in groups["grammar:train"])
    for construction, lemmas in groups[f"grammar:{split}"]:
        assert lemmas and lemmas <= known and uses[construction] >= 100
        assert not {(construction, lemma) for lemma in lemmas} & trained


@pytest.mark.parametrize("name", ["", ":words", ":phrases:valid", ":grammar:dev", ":grammar:test:x"])
def test_what_is_not_there_is_refused_with_what_is(name):
    with pytest.raises(UserError, match=r"phrasebook:grammar:test, phrasebook:grammar:train") as caught:
        load_source(DataConfig(), f"phrasebook{name}", "valid")
    assert "\n" not in str(caught.value)


def test_other_languages_are_refused():
    with pytest.raises(UserError, match="columns are en and es"):
        load_source(DataConfig(columns=["en", "fr"], target="fr"), "phrasebook:grammar", "train")
