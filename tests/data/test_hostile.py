"""Files that are no corpus, lines that are no sentences, and run directories that someone has edited."""

import gzip
import hashlib
import io
import json
import os
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UserError
from common.files import LONGEST_LINE, with_check
from data.batches.stream import validation_batches
from data.config import DataConfig, TokenizerConfig
from data.corpus.report import SharedSentences, Sides
from data.corpus.splits import hash_sentences, refuse_overlap
from data.pairs import Pairs, concatenate, normalise, sort_combining_marks
from data.sources.lines import join_lines, read_byte_lines
from data.sources.table import Cells
from data.tokens.tokenizer import Tokenizer, train
from tests.data.sources.reading import SKIPPING, load, refused
from tests.prepared import build_corpus, stream_of
from tests.processes import printed_by
from training.run.corpus import load_tokenizer, overlap_with_training, save_hashes, save_tokenizer
from training.run.layout import TRAINING_SENTENCES, checkpoint_path
from training.run.row_counts import RowCounts, load_row_counts

LONG = 1_000_000


# Corpora: what is no regular file


def test_what_is_no_file_is_refused_without_being_read(tmp_path):
    """In another process, with a limit of time: whoever opens a pipe waits for ever."""
    pipes = ("a.tsv", "a.tsv.gz", "a.txt", "a.jsonl", "a.parquet", "p.en", "p.en.gz")
    for name in pipes:
        os.mkfifo(tmp_path / name)
    (tmp_path / "zero.tsv").symlink_to("/dev/zero")
    (tmp_path / "folder.jsonl").mkdir()
    names = [*pipes[:5], "p.LANG", "p.LANG.gz", "zero.tsv", "folder.jsonl", f"{'x' * 5000}.tsv", "a\N{SNOWMAN}.tsv"]
    code = (
        "import sys; from common.errors import *; from data.config import *; from data.sources.source import *\n"
        "for name in sys.argv[2:]:\n"
        "    try: load_source(DataConfig(root=sys.argv[1]), name, 'train')\n"
        "    except UserError as error: print(error)"
    )
    for line, name in zip(printed_by(code, tmp_path, *names), names, strict=True):
        assert line.startswith(f"no train file at {tmp_path / name.replace('LANG', 'en')}; set data.root=FOLDER ")
    for name in ("a\0.tsv", "a\0.LANG"):
        assert refused(tmp_path, name).startswith("no train file at ")


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.txt", "a.jsonl", "a.LANG", "a.parquet"])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, name):
    (tmp_path / name.replace("LANG", "en")).symlink_to("/proc/self/mem")  # a file whose reading fails, for root too
    (tmp_path / "a.es").write_text("x\n")
    told = refused(tmp_path, name)
    assert told.startswith(f"cannot read {name.replace('LANG', 'en')}")
    assert "Input/output error" in told or name == "a.parquet"


# Corpora: lines


ROW_OF = {
    ".tsv": "{}\tuno\n",
    ".tsv.gz": "{}\tuno\n",
    ".csv": '"{}","uno"\n',
    ".jsonl": '{{"en": "{}", "es": "uno"}}\n',
    ".LANG": "{}\n",
}


@pytest.mark.parametrize(("ending", "encoding"), [*((ending, "utf-8-sig") for ending in ROW_OF), (".tsv", "utf-16")])
def test_a_line_of_many_megabytes_is_never_held_as_a_whole(tmp_path, ending, encoding):
    """At the start of a file stands a byte order mark, too."""
    monster, name = "x" * 2 * LONGEST_LINE, f"a{ending}"
    settings = {"header": "skip", "encoding": encoding.removesuffix("-sig")}
    problem = f"more than {LONGEST_LINE:,} bytes in the line; break it into several"
    for texts in (["one", "two", monster, "four"], [monster, "two", "three", "four"]):
        content = "".join(map(ROW_OF[ending].format, texts)).encode(encoding)
        path = tmp_path / name.replace("LANG", "en")
        path.write_bytes(gzip.compress(content, 1) if ending.endswith(".gz") else content)
        (tmp_path / "a.es").write_text("uno\n" * 4, encoding=encoding)
        assert max(map(len, read_byte_lines(path, settings["encoding"]))) < LONGEST_LINE + 10
        number = 1 + texts.index(monster)
        told = refused(tmp_path, name, **settings)
        assert told == f"{path.name}:{number}: {problem}. data.malformed=skip drops and counts such lines"
        pairs, report = load(tmp_path, name, **settings, **SKIPPING)
        assert (pairs.sources, report.malformed) == ([text for text in texts if text != monster], 1)


def test_a_record_of_many_megabytes_is_never_held_as_a_whole(tmp_path):
    """A quotation mark that nothing closes joins no more lines than one line may hold."""
    (tmp_path / "a.csv").write_text('one,uno\n"' + f"{'x' * (LONGEST_LINE // 4)}\n" * 20 + "three,tres\n")
    joined = join_lines(read_byte_lines(tmp_path / "a.csv"), 1, Cells(",", quoted=True).is_open)
    assert max(len(record) for _, record in joined) < 2 * LONGEST_LINE


@pytest.mark.slow
def test_a_million_characters_on_a_line_are_dropped_counted_and_change_nothing_else(tmp_path, phrases):
    good = list(zip(phrases.sources, phrases.targets, strict=True))
    letters, words, marks = "x" * LONG, ("casa " * (LONG // 5)).strip(), "a" + "\u0301\u0316" * (LONG // 2)
    monsters = [(letters, letters), (letters, "x"), (words, words[: LONG // 3]), (marks, marks), ("x", words)]
    (tmp_path / "train.tsv").write_text("".join(f"{en}\t{es}\n" for en, es in [*monsters, *good]), encoding="utf-8")
    (tmp_path / "v.tsv").write_text("one\tuno\n")
    config = DataConfig(root=str(tmp_path), valid="v.tsv", test="v.tsv", allow_overlap=["valid/test"])
    corpus = build_corpus(config)
    assert [(account.rows, account.mismatched) for account in corpus.files.train] == [(245, 2)]
    training = corpus.training
    for kind in ("unigram", "bpe"):
        tokenizer = Tokenizer(train(training, TokenizerConfig(type=kind, vocab_size=330)))
        stream = stream_of(training, tokenizer, config, seed=1)
        assert (stream.encoded.over_long, len(stream.encoded)) == (3, 240)
        assert set(zip(stream.encoded.texts.sources, stream.encoded.texts.targets, strict=True)) == set(good)
        alone = stream_of(stream.encoded.texts, tokenizer, config, seed=1)
        assert stream.row_lengths == alone.row_lengths  # a million tokens against a third of that would be (64, 21)


def test_sampled_rows_have_the_lengths_of_sentences_alone(phrases, phrase_tokenizer):
    config = DataConfig(subword_sampling=0.2, batch_rows=4)
    monster = Pairs(["casa " * 20_000], ["casa " * 7_000])
    stream = stream_of(concatenate([monster, phrases]), phrase_tokenizer, config, seed=1)
    assert stream.encoded.over_long == 1
    assert stream.row_lengths == stream_of(phrases, phrase_tokenizer, config, seed=1).row_lengths


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_nothing_but_monsters_is_refused(phrase_tokenizer, alpha):
    monsters = Pairs(["x" * 5000] * 2, ["x" * 5000] * 2)
    with pytest.raises(UserError, match=r"no training pair fits a row of data\.row_length=64 tokens; raise it"):
        stream_of(monsters, phrase_tokenizer, DataConfig(subword_sampling=alpha), seed=1)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sentences_that_are_too_long_for_any_vocabulary_are_told(kind):
    long = ["x y" * 2000, "z" * 4193]
    with pytest.raises(UserError, match="every training sentence is longer than SentencePiece's limit of 4192 bytes"):
        train(Pairs(long, long), TokenizerConfig(type=kind, vocab_size=300))
    few = r"=300 is too large for this corpus: it has at most \d+ pieces, and no vocabulary is below 300: add sentences"
    with pytest.raises(UserError, match=few):  # one is short enough
        train(Pairs([*long, "z" * 4192], [*long, "z"]), TokenizerConfig(type=kind, vocab_size=300))


def test_a_validation_pair_beyond_all_memory_is_told(phrases, phrase_tokenizer):
    config = DataConfig(row_length=48, batch_rows=2)
    fits, beyond = "y" * (16 * 48 - 2), "y" * 16 * 48  # a space before it, EOS after it
    (length,) = {len(ids) + 1 for ids in phrase_tokenizer.encode([fits])}
    assert length == 16 * 48
    pairs = Pairs([*phrases.sources[:3], fits], [*phrases.targets[:3], "a"])
    assert validation_batches(pairs, phrase_tokenizer, config, (48, 48))[0].source_tokens.shape == (2, 768)
    for sides in ((beyond, "a"), ("a", beyond)):
        told = r"data\.valid has a pair of 770 tokens, above 16 times data\.row_length: cut "
        with pytest.raises(UserError, match=told):
            validation_batches(Pairs(["b", sides[0]], ["b", sides[1]]), phrase_tokenizer, config, (48, 48))


def test_a_sentence_that_two_splits_share_is_told_in_brief():
    shared = Sides(SharedSentences(1, ["\x1b[2J" + "x" * LONG]), SharedSentences(0, []))
    with pytest.raises(UserError) as caught:
        refuse_overlap({"train/valid": shared}, [])
    assert 'such as "<U+001B>[2Jxxx' in str(caught.value) and len(str(caught.value)) < 500


# Combining marks: of one class and of others, characters that decompose into two of them, and what they may stand on.
MARKS = [chr(c) for c in (0x301, 0x316, 0x327, 0x344, 0xF71, 0xF73, 0xF75, 0x3099, 0x5B0, 0x1D165)]
LETTERS = ["a", "ñ", "ǘ", "é", " ", "가", "\u1100", "\u1161", "\u11a8", "か", "क", "\u200d"]


@settings(max_examples=300)
@given(st.lists(st.one_of(st.sampled_from(MARKS), st.sampled_from(LETTERS)), max_size=40).map("".join))
def test_marks_in_order_are_the_same_text(text):
    assert sort_combining_marks(text) == unicodedata.normalize("NFD", text)
    long = f"x{text * 30}"
    assert normalise(long) == unicodedata.normalize("NFC", " ".join(long.split()))


def test_a_run_of_a_million_marks_is_normalised_at_once():
    """In another process, with a limit of time: Unicode's own way would take many minutes."""
    code = (
        "from data.pairs import normalise; n = 500_000\n"
        "assert normalise('a' + '\\u0301\\u0316' * n) == 'á' + '\\u0316' * n + '\\u0301' * (n - 1)\n"
        "assert normalise('x' + '\\u0301' * n + '\\u0316' * n) == 'x' + '\\u0316' * n + '\\u0301' * n\n"
        "assert normalise('x' + '\\u0f73' * n) == 'x' + '\\u0f71' * n + '\\u0f72' * n"
    )
    assert printed_by(code) == []


# Run directories

NO_MODEL = [b"", b"hello", b"\0" * 100, b"\x12\x00", b"\n\x07\n\x05hello"]  # the last two are well-formed, and empty
NO_CHECK = ["", "[]", "null", "3", '"x"', "NaN", "[" * 100_000, "9" * 10_000, '{"key": "x"}', '{"sha256": [1]}']


def damaged_tokenizer(run_dir: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_tokenizer(run_dir)
    return str(caught.value)


def test_an_edited_tokenizer_is_named(tmp_path, phrase_tokenizer):
    save_tokenizer(tmp_path, phrase_tokenizer)
    told = f"{tmp_path}/tokenizer.model and tokenizer.json do not belong together: one of them is damaged; bring both"
    for content in [*NO_CHECK, "\xff"]:
        (tmp_path / "tokenizer.json").write_text(content, encoding="latin-1")
        assert damaged_tokenizer(tmp_path).startswith(told)
    save_tokenizer(tmp_path, phrase_tokenizer)
    (tmp_path / "tokenizer.model").write_bytes(phrase_tokenizer.model + b"x")
    assert damaged_tokenizer(tmp_path).startswith(told)


def test_a_file_that_is_no_vocabulary_is_named_even_if_its_hash_is_right(tmp_path, phrase_tokenizer):
    for model in [*NO_MODEL, phrase_tokenizer.model[:-10], phrase_tokenizer.model[: len(phrase_tokenizer.model) // 2]]:
        (tmp_path / "tokenizer.model").write_bytes(model)
        (tmp_path / "tokenizer.json").write_text(json.dumps({"sha256": hashlib.sha256(model).hexdigest()}))
        assert "one of them is damaged" in damaged_tokenizer(tmp_path)
        with pytest.raises(ValueError, match="not a SentencePiece model"):
            Tokenizer(model)


def test_a_vocabulary_with_other_special_symbols_is_not_taken(tmp_path, phrases):
    """As SentencePiece makes it by itself: no padding, and unknown is 0."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(phrases.sources), model_writer=model, vocab_size=40, minloglevel=2
    )
    with pytest.raises(ValueError, match=r"unknown, BOS and EOS are \(-1, 0, 1, 2\), not \(0, 1, 2, 3\)"):
        Tokenizer(model.getvalue())


@pytest.mark.parametrize("name", ["tokenizer.model", "tokenizer.json"])
def test_a_folder_in_place_of_the_tokenizer_is_named(tmp_path, phrase_tokenizer, name):
    save_tokenizer(tmp_path, phrase_tokenizer)
    (tmp_path / name).unlink()
    assert damaged_tokenizer(tmp_path) == f"{tmp_path} has no {name}: is it the directory of a training run?"
    (tmp_path / name).mkdir()
    assert damaged_tokenizer(tmp_path) == f"cannot read {tmp_path / name}: Is a directory"


class Trap:
    """What a pickle runs when it is read."""

    def __reduce__(self):
        return os.mkdir, ("trap",)


def packed(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def claiming(shape: str) -> bytes:
    """An archive whose arrays say that they have a shape, and hold nothing."""
    header = f"{{'descr': '<u8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("source.npy", "target.npy"):
            archive.writestr(name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return file.getvalue()


HASHES = np.array([1, 2], dtype="<u8")
TRAP = np.array([Trap()], dtype=object)
DAMAGED = {
    "empty": b"",
    "cut": packed(source=HASHES, target=HASHES)[:-10],
    "a trap": packed(source=TRAP, target=TRAP),
    "one array": packed(source=HASHES),
    "floats": packed(source=HASHES, target=HASHES.astype(np.float64)),
    "a table": packed(source=HASHES[None], target=HASHES),
    "larger than any memory": claiming("(1000000000000000,)"),
    "code for a shape": claiming("__import__('os').mkdir('trap')"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_hashes_are_named_and_never_unpickled(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / TRAINING_SENTENCES).write_bytes(content)
    with pytest.raises(UserError) as caught:
        overlap_with_training(tmp_path, ["a"], ["b"])
    assert str(caught.value).startswith(f"{tmp_path / TRAINING_SENTENCES} is damaged: continue the run with train.py, ")
    assert not (tmp_path / "trap").exists()
    save_hashes(tmp_path, Sides(hash_sentences(["A!", "c"]), hash_sentences(["d", "e"])))
    assert overlap_with_training(tmp_path, ["a"], ["b"]) == (1, 0)


def add_checkpoint(run: Path, step: int, listed: object) -> Path:
    """A checkpoint of one small file, whose manifest lists these digests."""
    folder = checkpoint_path(run, step)
    folder.mkdir(parents=True)
    (folder / "params").write_text("content")
    facts = with_check({"step": step, "notes": {}, "sha256": listed})
    (folder / "manifest.json").write_text(json.dumps(facts, indent=1))
    return folder


READ = """
import resource, sys; from pathlib import Path
from common.errors import UserError; from evaluation.sentences import read_sentences
from training.run.corpus import *; from training.run.retention import good_steps
resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
reading = [good_steps, load_tokenizer, load_usual_source, load_hashes, lambda run: load_identity(run / "data.json")]
reading += [lambda run: load_row_counts(run, ""), lambda run: read_sentences(run / "eval" / "test.jsonl")]
for run in map(Path, sys.argv[1:]):
    for read in reading:
        try: print(read(run))
        except UserError as error: print(error)
"""


def test_what_is_no_file_of_a_run_is_neither_waited_for_nor_read(tmp_path):
    """In another process, with a limit of time and memory: pipes never end, nor do devices."""
    digest, pipe, endless = hashlib.sha256(b"content").hexdigest(), tmp_path / "pipe", tmp_path / "endless"
    (tmp_path / "params").write_text("content")
    for run, replace in ((pipe, os.mkfifo), (endless, lambda path: path.symlink_to("/dev/zero"))):
        names = ["/dev/zero", str(tmp_path / "params"), "../../../params", "a\0b", "", "missing"]
        bad = [5, [digest], *({name: digest} for name in names), {"params": 5}]
        for step, listed in enumerate(bad, start=1):
            add_checkpoint(run, step, listed)
        replace(add_checkpoint(run, 11, {"other": digest}) / "other")
        replace(add_checkpoint(run, 12, {"params": digest}) / "unlisted")
        manifest = add_checkpoint(run, 13, {}) / "manifest.json"
        manifest.unlink()
        replace(manifest)
        (add_checkpoint(run, 14, {}) / "manifest.json").write_text("[" * 1_000_000)
        (add_checkpoint(run, 15, {"linked": digest}) / "linked").symlink_to(tmp_path / "params")
        add_checkpoint(run, 16, {"params": digest})
        checkpoint_path(run, 16).with_name("1²").mkdir()
        (run / "eval").mkdir()
        names = ["tokenizer.model", "tokenizer.json", "training_sentences.npz", "data.json", "row_counts.json"]
        for name in [*names, "eval/test.jsonl"]:
            replace(run / name)
    assert printed_by(READ, pipe, endless) == [
        line
        for run in (pipe, endless)
        for line in (
            "[16]",
            f"cannot read {run / 'tokenizer.model'}: not a regular file",
            f"{run / 'data.json'} is damaged; it says which sentences to translate whole: bring it back",
            f"{run / 'training_sentences.npz'} is damaged: continue the run with train.py, which writes it again",
            "None",
            "{}",
            f"{run / 'eval' / 'test.jsonl'} cannot be read (not a regular file): evaluate the run again",
        )
    ]


def test_a_vocabulary_of_a_gigabyte_is_not_read(tmp_path, phrase_tokenizer):
    save_tokenizer(tmp_path, phrase_tokenizer)
    with open(tmp_path / "tokenizer.model", "wb") as file:
        file.truncate(2**30)
    assert damaged_tokenizer(tmp_path) == f"cannot read {tmp_path / 'tokenizer.model'}: above 67,108,864 bytes"


ROWS = ["[" * 500 + "]" * 500, "[[0, 0, -5]]", "[[0, 0, 1" + "0" * 5000 + "]]", "[[0, 0, 1e999], [NaN, [], {}]]", '"a"']
COUNTS = ["[" * 100_000, '{"rows": [[0, 0, 1]]}', "\ud800", *('{"check": "x", "rows": ' + rows + "}" for rows in ROWS)]


@pytest.mark.parametrize("content", COUNTS, ids=range(len(COUNTS)))
def test_row_counts_are_believed_by_their_checksum_alone(tmp_path, phrases, phrase_tokenizer, content):
    config, cache = DataConfig(batch_rows=4, window=50), tmp_path / "row_counts.json"
    cache.write_bytes(content.encode(errors="surrogatepass"))
    stream = stream_of(phrases, phrase_tokenizer, config, 3)
    assert load_row_counts(tmp_path, stream.fingerprint) == {}
    stream.windows.row_counts = RowCounts(tmp_path, stream.fingerprint, {})
    expected = stream_of(phrases, phrase_tokenizer, config, 3).batch(7)
    np.testing.assert_array_equal(stream.batch(7).source_tokens, expected.source_tokens)
    assert json.loads(cache.read_text())["rows"]  # written anew
