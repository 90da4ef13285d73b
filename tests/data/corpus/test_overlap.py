import hashlib

import pytest

from common.errors import UserError
from data.corpus.report import SharedSentences, Sides
from data.corpus.splits import find_overlap, hash_sentences, refuse_overlap
from data.pairs import Pairs, fold

CLEAN = {
    "train": Pairs(["I see.", "Go!"], ["Ya veo.", "¡Ve!"]),
    "valid": Pairs(["Stop."], ["Para."]),
    "test": Pairs(["Wait."], ["Espera."]),
}


@pytest.mark.parametrize(
    ("sentence", "folded"),
    [
        ("¿Qué TAL,   estás?", "qué tal estás"),
        ("Straße – €5 + 1", "strasse 5 1"),
        ("don't", "dont"),
        ("¡¿?!", "¡¿?!"),
        ("", ""),
        ("Slee\u00ading\u200b \u2060so\u200dn❤\ufe0f\u200e", "sleeing son"),
        ("می\u200cخواهم", "میخواهم"),
    ],
)
def test_fold(sentence, folded):
    assert fold(sentence) == folded


def test_hashes_are_sorted_distinct_and_of_folded_text():
    hashes = hash_sentences(["Go!", "go", "Stop."])
    by_hand = [int.from_bytes(hashlib.blake2b(t, digest_size=8).digest(), "little") for t in (b"go", b"stop")]
    assert hashes.tolist() == sorted(by_hand)
    assert hash_sentences([]).shape == (0,)


def test_planted_overlap_is_found_and_stops():
    test = Pairs(["¿GO?", "go", "Wait."], ["Espera.", "ya  veo!", "«Ya veo»"])
    report = find_overlap(CLEAN | {"test": test})
    assert list(report) == ["train/valid", "train/test", "valid/test"]
    assert report["train/test"] == Sides(SharedSentences(1, ["go"]), SharedSentences(1, ["ya veo"]))
    with pytest.raises(UserError, match=r'1 source and 1 target sentences, such as "go"') as caught:
        refuse_overlap(report, allowed=["valid/test"])
    assert "drop those training pairs with data.drop_overlap=true, or accept them" in str(caught.value)
    assert "data.allow_overlap=[valid/test,train/test]" in str(caught.value)
    with pytest.raises(UserError, match="Remove them from one of the files, or accept them"):
        refuse_overlap(find_overlap(CLEAN | {"test": CLEAN["valid"]}), allowed=["train/test"])
    refuse_overlap(report, allowed=["train/test"])


def test_examples_are_at_most_three():
    many = Pairs([f"Word {i}" for i in range(9)], ["x"] * 9)
    sides = find_overlap(CLEAN | {"train": many, "valid": many})["train/valid"]
    assert sides.source == SharedSentences(9, ["word 0", "word 1", "word 2"])
