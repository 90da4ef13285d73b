"""Several sources become leak-free splits, and every row of each source is accounted for."""

import collections
import hashlib
import json
from dataclasses import astuple, replace

import pytest

from common.errors import UserError
from data.config import DataConfig, TokenizerConfig
from data.corpus.report import SPLITS, Dropped
from data.pairs import Pairs, concatenate, fold
from tests.prepared import build_corpus, prepare_and_save
from training.run.corpus import load_held_out

TOKENIZER = TokenizerConfig(vocab_size=330)


def rows(pairs: Pairs) -> list[tuple[str, str]]:
    return list(zip(pairs.sources, pairs.targets, strict=True))


def numbered(word: str, count: int) -> list[tuple[str, str]]:
    return [(f"{word} number {i}", f"{word} número {i}") for i in range(count)]


def write(path, lines) -> str:
    """A table of pairs; a line that is a text stands as it is. Returns the SHA-256 of the file."""
    text = "".join((line if isinstance(line, str) else "\t".join(line)) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def files_in(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def config(folder, **changes) -> DataConfig:
    return DataConfig(root=str(folder), batch_rows=4, **changes)


@pytest.fixture
def two_sources(tmp_path, phrases):
    """All phrases, the first 200 in one file and the last 40 in another."""
    write(tmp_path / "a.tsv", rows(phrases)[:200])
    write(tmp_path / "b.tsv", rows(phrases)[200:])
    return tmp_path


WITHOUT = {"train": ["a.tsv", "b.tsv"], "valid": "", "test": ""}


def test_every_row_of_every_source_is_accounted_for(tmp_path):
    flawed = ["no tab", "", " \t", ("", "vacío"), ("empty", " "), ("x", "y" * 80), ("Leak 3", "x"), ("x", "¡fuga 4!")]
    digests = [
        write(tmp_path / "a.tsv", [*flawed, *numbered("word", 100)]),
        write(tmp_path / "b.jsonl", ['{"en": 3}', *[json.dumps({"en": s, "es": t}) for s, t in numbered("other", 60)]]),
        write(tmp_path / "c.tsv", [("Leak 1", "Fuga 1"), *numbered("third", 20)]),
        write(tmp_path / "valid.tsv", [(f"leak {i}", f"fuga {i}") for i in range(5)]),
    ]
    sources = {"train": ["a.tsv", "b.jsonl", "c.tsv"], "weights": [1.0, 0.5, 2.0], "test": "", "held_out": 7}
    corpus = build_corpus(config(tmp_path, **sources, malformed="skip", max_malformed=0.02, drop_overlap=True))
    train = corpus.files.train
    counted = [[a.rows, a.malformed, a.empty, a.mismatched, a.overlapping] for a in train]
    assert counted == [[108, 1, 4, 1, 2], [61, 1, 0, 0, 0], [21, 0, 0, 0, 1]]
    assert [(account.file, account.sha256, account.weight) for account in train] == [
        (str(tmp_path / name), digest, weight)
        for name, digest, weight in zip(("a.tsv", "b.jsonl", "c.tsv"), digests, (1, 0.5, 2), strict=False)
    ]
    for account, pairs in zip(train, corpus.by_source(), strict=True):
        assert account.pairs == len(pairs)
        assert account.rows == len(pairs) + sum(astuple(account.dropped()))
    assert sum(account.held_out for account in train) == len(corpus.test) == 7
    assert corpus.files.dropped() == Dropped(malformed=2, empty=4, mismatched=1, overlapping=3, held_out=7)
    good = {*numbered("word", 100), *numbered("other", 60), *numbered("third", 20)}
    assert {*rows(concatenate(corpus.by_source())), *rows(corpus.test)} == good
    assert sum(map(len, corpus.by_source())) + len(corpus.test) == 180
    valid = corpus.files.valid
    assert (valid.file, valid.sha256, valid.rows) == (str(tmp_path / "valid.tsv"), digests[3], 5)
    assert corpus.files.test.rows == 7


def test_sets_without_a_name_are_taken_out_kept_and_found_again(two_sources, phrases):
    run, settings = two_sources / "run", config(two_sources, **WITHOUT)
    prepared = prepare_and_save(settings, TOKENIZER, 1, run)
    report = json.loads((run / "data.json").read_text())
    assert report == json.loads(prepared.report.as_json())
    held_out = {}
    for split in ("valid", "test"):
        path = run / "held_out" / f"{split}.tsv"
        held_out[split], found = load_held_out(settings, split, run)
        lines = path.read_text(encoding="utf-8").split("\n")
        assert lines == [*map("\t".join, rows(held_out[split])), ""]
        told = {"file": str(path), "rows": 12, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        assert report["files"][split] == [told | {"malformed": 0, "empty": 0}]
        assert (found.rows, found.sha256) == (12, report["files"][split][0]["sha256"])  # 240 / 20 = 12
    assert prepared.corpus.valid == held_out["valid"]
    parts = [*held_out.values(), prepared.stream.encoded.texts]
    assert collections.Counter(row for part in parts for row in rows(part)) == collections.Counter(rows(phrases))
    assert all(side["shared"] == 0 for sides in report["overlap"].values() for side in sides.values())
    assert report["dropped"]["held_out"] == 24 and report["training_pairs"] == 216
    assert report["training_pairs"] + sum(report["dropped"].values()) == 240
    other = config(two_sources, **WITHOUT, source="es", target="en")
    reverse = prepare_and_save(other, TOKENIZER, 2, two_sources / "other").corpus
    assert load_held_out(other, "valid", two_sources / "other")[0] == reverse.valid == held_out["valid"].reversed()
    assert files_in(two_sources / "other/held_out") == files_in(run / "held_out")


def test_a_moved_run_keeps_its_sets(two_sources, monkeypatch):
    settings = config(two_sources, **WITHOUT)
    prepared = prepare_and_save(settings, TOKENIZER, 1, two_sources / "run")
    (two_sources / "run").rename(two_sources / "moved")
    monkeypatch.chdir(two_sources)
    for run in (two_sources / "moved", two_sources.joinpath("moved").relative_to(two_sources)):
        assert load_held_out(settings, "valid", run)[0] == prepared.corpus.valid
    with pytest.raises(UserError, match="no test file at"):
        load_held_out(settings, "test", two_sources / "run")


@pytest.mark.parametrize("split", ["valid", "test"])
def test_one_set_may_have_a_name_and_the_other_none(two_sources, split):
    write(two_sources / "named.tsv", [("A named pair.", "Un par con nombre.")])
    settings = config(two_sources, **WITHOUT | {split: "named.tsv"}, held_out=5)
    prepared = prepare_and_save(settings, TOKENIZER, 1, two_sources / "run")
    other = {"valid": "test", "test": "valid"}[split]
    assert [path.name for path in (two_sources / "run/held_out").iterdir()] == [f"{other}.tsv"]
    assert rows(load_held_out(settings, split, two_sources / "run")[0]) == [("A named pair.", "Un par con nombre.")]
    assert len(load_held_out(settings, other, two_sources / "run")[0]) == 5
    assert prepared.report.training_pairs == 235


@pytest.mark.parametrize(("asked", "pairs", "expected"), [(3, 240, 3), (1000, 240, 12), (1000, 39, 1), (1, 240, 1)])
def test_a_set_is_as_large_as_asked_but_never_above_a_twentieth(tmp_path, phrases, asked, pairs, expected):
    write(tmp_path / "a.tsv", rows(phrases)[:pairs])
    corpus = build_corpus(config(tmp_path, **WITHOUT | {"train": ["a.tsv"]}, held_out=asked))
    assert list(map(len, (corpus.valid, corpus.test, corpus.training))) == [expected, expected, pairs - 2 * expected]


def test_sources_that_share_sentences_are_parted_as_one(tmp_path):
    """Each sentence of a.tsv has another translation in b.tsv."""
    write(tmp_path / "a.tsv", numbered("word", 100))
    write(tmp_path / "b.tsv", [(f"Word, NUMBER {i}!", f"otra {i}") for i in range(100)])
    corpus = build_corpus(config(tmp_path, **WITHOUT))
    assert len(corpus.valid) == len(corpus.test) == 10
    for pairs in (corpus.valid, corpus.test):
        assert set(collections.Counter(map(fold, pairs.sources)).values()) == {2}
    assert [account.held_out for account in corpus.files.train] == [10, 10]


def test_overlap_stops_unless_it_is_dropped(tmp_path):
    write(tmp_path / "train.tsv", [*numbered("word", 20), ("¡WORD: number 70!", "nuevo"), ("new", "Word NÚMERO 71.")])
    write(tmp_path / "valid.tsv", [("word number 70", "a"), ("word number 99", "b")])
    write(tmp_path / "test.tsv", [("other", "word número 71")])
    with pytest.raises(UserError, match="train/valid 1 source and 0 target sentences") as caught:
        build_corpus(config(tmp_path))
    assert "train/test 0 source and 1 target" in str(caught.value)
    corpus = build_corpus(config(tmp_path, drop_overlap=True))
    assert rows(corpus.by_source()[0]) == numbered("word", 20)
    assert corpus.files.train[0].overlapping == 2
    assert (len(corpus.valid), len(corpus.test)) == (2, 1)  # whole
    accepted = build_corpus(config(tmp_path, allow_overlap=["train/valid", "train/test"]))
    assert len(accepted.by_source()[0]) == 22 and accepted.files.train[0].overlapping == 0


def test_dropping_never_touches_the_held_out_sets(tmp_path):
    write(tmp_path / "train.tsv", numbered("word", 20))
    write(tmp_path / "valid.tsv", [("same", "a")])
    write(tmp_path / "test.tsv", [("Same.", "b")])
    with pytest.raises(UserError, match="valid/test 1 source and 0 target sentences"):
        build_corpus(config(tmp_path, drop_overlap=True))


@pytest.mark.parametrize(
    ("second", "counts"),
    [
        ([("", "x"), ("y", "")], "2 rows: 0 malformed, 2 empty, 0 mismatched, 0 overlapping, 0 held_out"),
        ([("x" * 90, "y")], "1 rows: 0 malformed, 0 empty, 1 mismatched, 0 overlapping, 0 held_out"),
        (["bad", ("leak", "y")], "2 rows: 1 malformed, 0 empty, 0 mismatched, 1 overlapping, 0 held_out"),
    ],
)
def test_a_source_of_which_nothing_is_left_is_named_with_the_reasons(tmp_path, second, counts):
    write(tmp_path / "a.tsv", numbered("word", 20))
    write(tmp_path / "b.tsv", second)
    write(tmp_path / "valid.tsv", [("Leak", "fuga")])
    settings = config(
        tmp_path, train=["a.tsv", "b.tsv"], test="", malformed="skip", drop_overlap=True, max_malformed=0.5
    )
    with pytest.raises(UserError) as caught:
        prepare_and_save(settings, TOKENIZER, 1, tmp_path / "run")
    assert str(caught.value) == f"{tmp_path / 'b.tsv'} has no training pairs left, out of {counts}"
    assert not (tmp_path / "run").exists()


def test_pairs_that_share_too_much_cannot_be_parted(tmp_path):
    write(tmp_path / "a.tsv", [("always the same", f"frase {i}") for i in range(60)])
    for sets in ({"valid": "", "test": ""}, {"valid": "v.tsv", "test": ""}):
        write(tmp_path / "v.tsv", [("valid", "válido")])
        with pytest.raises(UserError, match=r"no held-out set can be taken out of 60 training pairs .* data\.test"):
            build_corpus(config(tmp_path, train=["a.tsv"], **sets))
    write(tmp_path / "a.tsv", [("one", "uno")])
    with pytest.raises(UserError, match="out of 1 training pairs, which are too few"):
        build_corpus(config(tmp_path, train=["a.tsv"], valid="", test=""))


def test_what_little_can_be_held_out_is_shared_and_a_short_set_is_told(tmp_path):
    """Of 1,090 pairs, 1,000 share a reply: 54 are asked for each set, and 90 can be held out; then 20."""
    replies = [(f"Question number {i}", "Sí.") for i in range(1000)]
    write(tmp_path / "a.tsv", [*replies, *numbered("word", 90)])
    corpus = build_corpus(config(tmp_path, train=["a.tsv"], valid="", test=""))
    assert (len(corpus.valid), len(corpus.test), corpus.warnings) == (45, 45, [])
    write(tmp_path / "a.tsv", [*replies, *numbered("word", 20)])
    corpus = build_corpus(config(tmp_path, train=["a.tsv"], valid="", test=""))
    assert (len(corpus.valid), len(corpus.test)) == (10, 10)
    assert corpus.warnings == [
        f"data.{split}: only 10 of the requested 51 pairs can be taken out of the training pairs, because the "
        f"others share too many sentences: name a file in data.{split}"
        for split in ("valid", "test")
    ]


def test_weights_are_those_of_each_pair_or_none_where_all_are_one(two_sources):
    for weights in ([], [1.0, 1.0]):
        assert build_corpus(config(two_sources, **WITHOUT, weights=weights)).weights is None
    corpus = build_corpus(config(two_sources, **WITHOUT, weights=[0.5, 2.0]))
    first, second = (account.pairs for account in corpus.files.train)
    assert corpus.weights is not None and corpus.weights.tolist() == [0.5] * first + [2.0] * second


def test_an_edited_held_out_set_is_not_scored(two_sources):
    run = two_sources / "run"
    settings = config(two_sources, **WITHOUT)
    prepare_and_save(settings, TOKENIZER, 1, run)
    path = run / "held_out/test.tsv"
    whole = path.read_bytes()
    path.write_bytes(whole + b"Another pair.\tOtro par.\n")
    with pytest.raises(UserError, match=r"held_out/test\.tsv is not the set recorded in .*data\.json"):
        load_held_out(settings, "test", run)
    path.write_bytes(whole)
    assert len(load_held_out(settings, "test", run)[0]) == whole.count(b"\n")
    (run / "data.json").write_text("{}")
    with pytest.raises(UserError, match="is not the set"):
        load_held_out(settings, "test", run)


def test_a_set_taken_out_of_another_form_of_corpus_is_read_as_the_run_wrote_it(tmp_path, phrases):
    """With ids, a header, quoting and an encoding that the set does not have; one pair looks like a header."""
    pairs = [*rows(phrases), *numbered("señor", 60), ("English", "español")]
    lines = [f'{number}\t"{en}"\t"{es}"\n' for number, (en, es) in enumerate(pairs)]
    (tmp_path / "a.tsv").write_text("id\ten\tes\n" + "".join(lines), encoding="latin-1")
    form = {"columns": ["id", "en", "es"], "header": "skip", "quoting": "csv", "encoding": "latin-1"}
    settings = config(tmp_path, train=["a.tsv"], valid="", test="", **form)
    prepared = prepare_and_save(settings, TOKENIZER, 1, tmp_path / "run")
    test, report = load_held_out(settings, "test", tmp_path / "run")
    assert load_held_out(settings, "valid", tmp_path / "run")[0] == prepared.corpus.valid
    assert (len(test), report.rows, report.malformed, report.empty) == (15, 15, 0, 0)  # 301 / 20
    parts = [prepared.stream.encoded.texts, prepared.corpus.valid, test]
    assert collections.Counter(row for part in parts for row in rows(part)) == collections.Counter(pairs)
    write(tmp_path / "run/held_out/test.tsv", [("English", "español"), *rows(test)])
    with pytest.raises(UserError, match="is not the set recorded"):  # and not: a header
        load_held_out(settings, "test", tmp_path / "run")


def test_what_is_left_out_of_a_held_out_set_is_counted(tmp_path, phrases):
    write(tmp_path / "train.tsv", rows(phrases))
    write(tmp_path / "valid.tsv", ["", ("a new one", "uno nuevo"), " ", "no tab"])
    write(tmp_path / "test.tsv", [("another", "otro"), ("", "one-sided")])
    settings = config(tmp_path, malformed="skip", max_malformed=0.25)
    report = json.loads(prepare_and_save(settings, TOKENIZER, 1, tmp_path / "run").report.as_json())
    counts = {split: [report["files"][split][0][key] for key in ("rows", "malformed", "empty")] for split in SPLITS}
    assert counts == {"train": [240, 0, 0], "valid": [4, 1, 2], "test": [2, 0, 0]}
    with pytest.raises(UserError, match="1 of 4 lines are malformed"):
        load_held_out(replace(settings, max_malformed=0.24), "valid", tmp_path / "run")
