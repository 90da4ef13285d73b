"""Hashes and word counts by several processes are those of one."""

import subprocess
from collections import Counter

import numpy as np
import pytest

from common.errors import UserError
from data.corpus import summary
from data.corpus.splits import hash_sentences
from data.corpus.summary import summarise
from data.corpus.word_counts import hash_words, words_of
from data.sentences import store_sentences

SENTENCES = ["¿Qué tal?", "que tal", "", "İstanbul!", "straße", "STRASSE", "…"]
SENTENCES += [f"Line {i % 70}, {i}" for i in range(400)]


@pytest.mark.parametrize("few", [10**9, 100])
@pytest.mark.parametrize("build", [list, store_sentences])
def test_processes_find_what_one_finds(monkeypatch, few, build):
    monkeypatch.setattr(summary, "FEW", few)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    hashes, words = summarise(build(SENTENCES))
    np.testing.assert_array_equal(hashes, hash_sentences(SENTENCES))
    expected = Counter(word for sentence in SENTENCES for word in words_of(sentence))
    assert words.of(list(expected)).tolist() == list(expected.values())
    np.testing.assert_array_equal(words.hashes, np.sort(hash_words(list(expected))))
    assert words.of(["line", "tal", "strasse"]).tolist() == [400, 2, 2]


@pytest.mark.parametrize(("end", "reason"), [("kill -9 $$", "signal 9"), ("echo a >&2; echo b >&2; exit 1", "b")])
def test_a_process_that_does_not_end_well_is_named_in_one_line(monkeypatch, end, reason):
    popen = subprocess.Popen
    monkeypatch.setattr(summary, "FEW", 100)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: popen(["sh", "-c", end], **options))
    with pytest.raises(UserError, match=rf"^a process that counts words ended \({reason}\): is .* or memory full\?$"):
        summarise(store_sentences(SENTENCES))
