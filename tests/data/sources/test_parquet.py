"""Parquet files, and datasets of the hub by a local folder laid out like one; offline, one clear line."""

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from common.files import LONGEST_LINE
from data.pairs import Pairs
from data.sentences import scratch_folder
from tests.data.sources.reading import SKIPPING, load, refused
from tests.processes import files_limited_to

ROWS = [("one", "uno"), (" two\u00a0 ", "do\u0301s"), ("", '"tres\t3"'), ("NA", "null\n")]
READ = Pairs(["one", "two", "", "NA"], ["uno", "dós", '"tres 3"', "null"])
ENGLISH, SPANISH = map(list, zip(*ROWS, strict=True))

PAGE = """---
configs:
- config_name: en-es
  data_files:
  - {split: test, path: en-es/test-*}
  - {split: train, path: en-es/train-*}
  - {split: validation, path: en-es/validation-*}
- config_name: en-fr
  data_files:
  - {split: train, path: en-fr/train-*}
---
"""


def nested(rows: Sequence[tuple[str | None, str]], languages: tuple[str, str] = ("en", "es")) -> dict[str, list]:
    return {"translation": [dict(zip(languages, row, strict=True)) for row in rows]}


def write(path: Path, columns: dict[str, list], **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def dataset(folder: Path) -> Path:
    """A folder laid out like a dataset on the hub."""
    for split in ("train", "validation", "test"):
        shards = [[(f"{split} {i}", f"{split} n.º {i}") for i in numbers] for numbers in ((0, 1), (2,))]
        for number, rows in enumerate(shards):
            write(folder / f"en-es/{split}-0000{number}-of-00002.parquet", nested(rows))
    write(folder / "en-fr/train-00000-of-00001.parquet", nested([("three", "trois")], ("en", "fr")))
    (folder / "README.md").write_text(PAGE, encoding="utf-8")
    return folder


FORMS: dict[str, dict[str, Any]] = {
    "columns": {"en": ENGLISH, "es": SPANISH},
    "more columns": {"id": [1, 2, 3, 4], "es": SPANISH, "en": ENGLISH},
    "nested": nested(ROWS),
    "nested among others": {"en": [1, 2, 3, 4], "translation": [{"fr": 1, "es": es, "en": en} for en, es in ROWS]},
    "dictionary": {"en": pyarrow.array(ENGLISH).dictionary_encode(), "es": pyarrow.array(SPANISH)},
    "large": {"en": pyarrow.array(ENGLISH, pyarrow.large_string()), "es": pyarrow.array(SPANISH)},
}


@pytest.mark.parametrize("direction", ["en-es", "es-en"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_parquet_gives_the_same_pairs(tmp_path, form, direction):
    source, target = direction.split("-")
    for group in (1, 3, 100):
        path = write(tmp_path / "a.parquet", FORMS[form], row_group_size=group)
        pairs, report = load(tmp_path, "a.parquet", source=source, target=target)
        assert pairs == (READ if direction == "en-es" else Pairs(READ.targets, READ.sources))
        assert (report.file, report.rows, report.malformed) == (str(path), 4, 0)
        assert report.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_rewritten_file_is_read_anew_and_its_name_is_no_pattern(tmp_path):
    for name in ("a.parquet", "a[1].parquet", "*.parquet", "a=b.parquet"):
        for text in ("one", "two"):
            write(tmp_path / name, {"en": [text], "es": ["x"]})
            assert load(tmp_path, name)[0] == Pairs([text], ["x"])
    write(tmp_path / "en=3/a.parquet", {"en": ["one"], "es": ["x"]})  # a folder's name is no column
    assert load(tmp_path, "en=3/a.parquet")[0] == Pairs(["one"], ["x"])


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (None, "is null, not plain text"),
        ("a\0", "is text with NUL or half a surrogate pair, not plain text"),
        ("x" * (LONGEST_LINE + 1), "has more than 10,000,000 characters"),
    ],
    ids=["null", "NUL", "long"],
)
@pytest.mark.parametrize("side", ["en", "es"])
def test_a_row_without_its_texts_is_named_or_skipped_and_counted(tmp_path, cell, problem, side):
    texts: dict[str, list] = {"en": ["a", "b", "c"], "es": ["x", "y", "z"]}
    texts[side][1] = cell
    write(tmp_path / "a.parquet", texts)
    told = f"a.parquet: row 2: {side} {problem}. data.malformed=skip "
    assert refused(tmp_path, "a.parquet").startswith(told)
    pairs, report = load(tmp_path, "a.parquet", **SKIPPING)
    assert (pairs, report.rows, report.malformed) == (Pairs(["a", "c"], ["x", "z"]), 3, 1)
    write(tmp_path / "a.parquet", texts | {side: [1, 2, 3]})
    told = f"a.parquet: its column {side} holds int64, not text; data.columns names others"
    assert refused(tmp_path, "a.parquet") == refused(tmp_path, "a.parquet", malformed="skip") == told


def test_a_null_translation_and_null_languages_are_skipped_and_counted(tmp_path):
    rows = [{"en": "a", "es": "x"}, None, {"en": None, "es": "y"}, {"en": "c", "es": None}, {"en": "d", "es": "z"}]
    write(tmp_path / "a.parquet", {"translation": rows})
    assert refused(tmp_path, "a.parquet").startswith("a.parquet: row 2: en is null, not plain text")
    pairs, report = load(tmp_path, "a.parquet", **SKIPPING)
    assert (pairs, report.rows, report.malformed) == (Pairs(["a", "d"], ["x", "z"]), 5, 3)


def test_missing_columns_are_named_with_those_there_are(tmp_path):
    write(tmp_path / "a.parquet", {"en": ["a"], "de": ["b"]})
    assert refused(tmp_path, "a.parquet") == (
        "a.parquet has no column es, only en, de: data.columns=[en,de] data.source=en data.target=de names them"
    )
    assert load(tmp_path, "a.parquet", columns=["en", "de"], target="de")[0] == Pairs(["a"], ["b"])
    write(tmp_path / "a.parquet", nested([("a", "b")], ("es", "fr")))
    assert "has no column translation.en, only translation.es, translation.fr" in refused(tmp_path, "a.parquet")
    write(tmp_path / "a.parquet", {"translation": ["a"], "en": ["b"]})
    assert "has no column translation.en, only translation, en" in refused(tmp_path, "a.parquet")
    write(tmp_path / "a.parquet", {"translation": ["by hand"], "en": ["a"], "es": ["b"]})
    assert load(tmp_path, "a.parquet")[0] == Pairs(["a"], ["b"])
    write(tmp_path / "a.parquet", {"translation": ["b"], "source": ["a"]})
    found = load(tmp_path, "a.parquet", columns=["source", "translation"], source="source", target="translation")
    assert found[0] == Pairs(["a"], ["b"])


def test_two_columns_of_one_name_are_refused(tmp_path):
    columns = [pyarrow.array([text]) for text in "abc"]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, names=["en", "es", "en"]), tmp_path / "a.parquet")
    assert refused(tmp_path, "a.parquet") == "a.parquet has 2 columns en: rename the others"
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, names=["en", "es", ""]), tmp_path / "a.parquet")
    assert load(tmp_path, "a.parquet")[0] == Pairs(["a"], ["b"])


@pytest.mark.parametrize("malformed", ["stop", "skip"])
def test_a_file_that_is_not_whole_parquet_is_named_and_nothing_is_printed(tmp_path, malformed, capfd):
    whole = write(tmp_path / "a.parquet", {"en": ["a"] * 99, "es": ["b"] * 99}).read_bytes()
    spoilt = whole[:10] + bytes(40) + whole[50:]
    for content in (b"", b"x\ty\n", whole[:-20], spoilt):
        (tmp_path / "a.parquet").write_bytes(content)
        assert refused(tmp_path, "a.parquet", malformed=malformed).startswith("cannot read a.parquet as Parquet: ")
    write(tmp_path / "a.parquet", {"en": pyarrow.array([], "string"), "es": pyarrow.array([], "string")})
    empty = "a.parquet has no sentence pairs: it needs rows with one each"
    assert refused(tmp_path, "a.parquet", malformed=malformed) == empty
    bytes_of_latin_1 = pyarrow.array([b"ni\xf1o"]).buffers()
    latin_1 = pyarrow.Array.from_buffers(pyarrow.string(), 1, bytes_of_latin_1)
    write(tmp_path / "a.parquet", {"en": ["boy"], "es": latin_1})
    assert refused(tmp_path, "a.parquet", malformed=malformed).startswith("a.parquet has text that is not UTF-8 (")
    assert capfd.readouterr() == ("", "")


def test_a_folder_like_a_hub_dataset_has_its_splits(tmp_path):
    dataset(tmp_path / "opus")
    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        expected = Pairs([f"{name} {i}" for i in range(3)], [f"{name} n.º {i}" for i in range(3)])
        text = "".join(f"{name} {i}\t{name} n.º {i}\n" for i in range(3))
        for spelling in ("opus:en-es", f"opus:en-es:{name}", f"{tmp_path}/opus:en-es", "./opus:en-es"):
            pairs, report = load(tmp_path, spelling, split)
            assert (pairs, report.rows, report.malformed) == (expected, 3, 0)
            assert report.sha256 == hashlib.sha256(text.encode()).hexdigest()
            assert report.file == f"{tmp_path}/opus:en-es:{name}"
        reverse, same = load(tmp_path, "opus:en-es", split, source="es", target="en")
        assert reverse == Pairs(expected.targets, expected.sources)
        assert same.sha256 == report.sha256


def test_a_split_may_be_chosen_and_cut_and_another_config_named(tmp_path, monkeypatch):
    dataset(tmp_path / "text")  # a folder named like a reader of the library is that folder
    monkeypatch.chdir(tmp_path)
    assert load(tmp_path / "nowhere", "text:en-es:test", "train")[0].sources == ["test 0", "test 1", "test 2"]
    assert load(tmp_path, "text:en-es:train[1:]")[0].sources == ["train 1", "train 2"]
    assert load(tmp_path, "text:en-fr", columns=["en", "fr"], target="fr")[0] == Pairs(["three"], ["trois"])


def test_a_changed_folder_is_read_anew_and_two_of_one_name_are_two(tmp_path):
    """The library's own cache gives the old rows for either."""
    for number in range(3):
        parent = tmp_path / str(number % 2)
        folder = dataset(parent / "opus")
        for shard in folder.glob("en-es/train-*"):
            write(shard, nested([(f"text {number}", "x")]))
        assert load(parent, "opus:en-es")[0].sources == [f"text {number}"] * 2


def test_a_full_disk_is_named_by_the_folder_that_a_dataset_is_unpacked_to(tmp_path):
    dataset(tmp_path / "opus")
    with files_limited_to(100):
        told = refused(tmp_path, "opus:en-es")
    assert told.startswith(f"cannot write {scratch_folder()}: File too large; ") and told.endswith("set TMPDIR=FOLDER")


def test_what_a_dataset_lacks_is_named_in_one_line(tmp_path, capfd):
    folder = dataset(tmp_path / "opus")
    told = "cannot load the dataset opus, config {}, split {}: {}"
    missing = {
        "opus:en-de": ("en-de", "train", "BuilderConfig 'en-de' not found. Available: ['en-es', 'en-fr']"),
        "opus": ("None", "train", "Config name "),
        "opus:en-fr:validation": ("en-fr", "validation", 'Unknown split "validation"'),
        "opus:en-es:dev:3": ("en-es", "dev:3", ""),
    }
    for name, facts in missing.items():
        assert refused(tmp_path, name).startswith(told.format(*facts))
    found = refused(tmp_path, "opus:en-fr")
    assert found.startswith("opus:en-fr:train has no column translation.es, only translation.en, translation.fr")
    write(folder / "en-es/test-00000-of-00002.parquet", nested([("a", "x"), (None, "y"), ("c", "z")]))
    assert refused(tmp_path, "opus:en-es", "test").startswith("opus:en-es:test: row 2: en is null, not plain text")
    pairs, report = load(tmp_path, "opus:en-es", "test", **SKIPPING)
    assert (pairs.sources, report.rows, report.malformed) == (["a", "c", "test 2"], 4, 1)
    (folder / "en-es/train-00001-of-00002.parquet").write_bytes(b"no Parquet")
    found = refused(tmp_path, "opus:en-es")
    assert found.startswith(told.format("en-es", "train", ""))
    assert "An error occurred while generating" not in found and len(found) > 70
    (folder / "README.md").write_text("---\nconfigs: [\n---\n")
    assert refused(tmp_path, "opus:en-es").startswith(told.format("en-es", "train", ""))
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path, "empty").startswith("cannot load the dataset empty, config None, split train: ")
    assert capfd.readouterr() == ("", "")


def test_words_such_as_none_are_text_in_a_folder_with_csv_and_longer_rows_are_refused(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/train.csv").write_text('en,es\nNone,Ninguno\nnull,N/A\nnan,"NA,\nno"\n')
    assert load(tmp_path, "set")[0] == Pairs(["None", "null", "nan"], ["Ninguno", "N/A", "NA, no"])
    (tmp_path / "set/train.csv").write_text("en,es\nx,y,z\n")
    assert "split train: Length of header or names does not match length of data." in refused(tmp_path, "set")


NO_NAMES = ["text", "csv", "a.dat", "mine.tsv.bz2", "/x/y", "../x", "a/b/c", "a b", "a:b/c", "/dev/zero", "a\0b"]


@pytest.mark.parametrize("name", [*NO_NAMES, "x" * 5000, f"{'x' * 5000}:en-es"])
def test_a_name_that_can_be_nothing_is_refused_at_once(tmp_path, monkeypatch, name):
    (tmp_path / "a.dat").write_text("x\ty\n")
    (tmp_path / "notes.txt").write_text("en,es\n")  # which datasets would read for the name text, or csv
    monkeypatch.chdir(tmp_path)
    told = refused(tmp_path / "nowhere", name)
    assert told.startswith(f"cannot read {name.partition(':')[0]}: it is neither a file (.tsv, ")
    assert told.endswith(") nor a folder nor OWNER/NAME on the hub")


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["no connection", "silence"])
def test_a_hub_that_does_not_answer_is_given_up_in_one_line_that_says_what_to_do(tmp_path, answer):
    """The library by itself asks six times, for half a minute or more, and tells of each."""
    server = socket.create_server(("127.0.0.1", 0))
    endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    if answer == "no connection":
        server.close()
    code = (
        "import sys; from common.errors import *; from data.config import *; from data.sources.source import *\n"
        "with exit_on_user_error(): load_source(DataConfig(), 'nobody/nothing:en-es', 'train')"
    )
    hub = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": endpoint, "HF_HUB_ETAG_TIMEOUT": "1"}
    environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()} | hub
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    server.close()
    assert done.returncode == 2
    assert told.startswith("error: the dataset nobody/nothing is not on this machine and the hub cannot be reached (")
    assert told.count("\n") == 1 and told.endswith(
        "; connect, or download it elsewhere (hf download --repo-type dataset nobody/nothing --local-dir FOLDER) and "
        "name FOLDER instead of nobody/nothing, or train offline: configs/quickstart.yaml\n"
    )
