"""What a run stores of its corpus comes back, and damage and changes are named."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from common.errors import UserError
from data.batches.stream import Start
from data.config import DataConfig, TokenizerConfig
from data.corpus.report import Sides
from data.corpus.splits import hash_sentences
from data.long_lines import Usual
from data.pairs import Pairs, as_tsv
from data.tokens.tokenizer import Tokenizer, train
from tests.prepared import prepare_and_save, stream_of
from training.run.corpus import (
    find_changes,
    identify,
    load_identity,
    load_usual_source,
    overlap_with_training,
    prepare_for_run,
    save_hashes,
    start_after_change,
)
from training.run.row_counts import RowCounts, load_row_counts

CONFIG = TokenizerConfig(vocab_size=300)
PAIRS = Pairs(
    [f"The cat number {i} sees {'the ' * (i % 5)}house." for i in range(200)],
    [f"El gato número {i} ve la casa{' y la casa' * (i % 4)}." for i in range(200)],
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.tsv").write_text(as_tsv(PAIRS), encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("How are you?\t¿Qué tal?\n\tNada.\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text("Good night.\tBuenas noches.\n", encoding="utf-8")
    return tmp_path


def config(folder, **changes):
    return DataConfig(root=str(folder), batch_rows=4, window=50, **changes)


def test_what_sources_are_like_is_read_back_and_an_older_run_has_no_record(folder):
    one = "Tom sees a cat and a dog."
    more = [one, *(f"{number} cats! {one}" for number in range(5))]
    pairs = Pairs([*PAIRS.sources, *more], [*PAIRS.targets, *more])
    (folder / "train.tsv").write_text(as_tsv(pairs), encoding="utf-8")
    prepared = prepare_and_save(config(folder), CONFIG, 1, folder / "run")
    longest = max(map(len, prepared.tokenizer.encode(pairs.sources))) + 1
    assert load_usual_source(folder / "run") == Usual(2, longest)
    facts = json.loads((folder / "run/data.json").read_text()) | {"check": None}  # as older versions wrote it
    for damaged in (None, 7, {"sentences": 1}, {"sentences": 0, "tokens": 9}, {"sentences": 1, "tokens": "9"}):
        (folder / "run/data.json").write_text(json.dumps(facts | {"usual_source": damaged}))
        assert load_usual_source(folder / "run") is None
    del facts["usual_source"]
    (folder / "run/data.json").write_text(json.dumps(facts))
    assert load_usual_source(folder / "run") is None


def test_no_changed_bit_of_the_record_changes_what_is_translated_whole_or_what_the_data_are(folder):
    report, path = prepare_and_save(config(folder), CONFIG, 1, folder / "run").report, folder / "run/data.json"
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 5):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert load_identity(path) in (None, identify(report))
        with suppress(UserError):
            assert load_usual_source(folder / "run") == report.usual_source


def test_preparing_writes_nothing_and_saving_it_again_changes_nothing(folder):
    prepare_for_run(folder / "run", config(folder, valid="", test=""), CONFIG, 1)
    assert not (folder / "run").exists()
    first = prepare_and_save(config(folder, valid="", test=""), CONFIG, 1, folder / "run")
    before = {path: path.read_bytes() for path in (folder / "run").rglob("*.*")}
    again = prepare_and_save(config(folder, valid="", test=""), CONFIG, 1, folder / "run")
    assert again.report == first.report
    after = {path: path.read_bytes() for path in (folder / "run").rglob("*.*")}
    assert {path for path in before if path.suffix != ".npz" and before[path] != after[path]} == set()
    assert before.keys() == after.keys()


def test_nothing_is_written_before_every_check_has_passed(folder):
    with pytest.raises(UserError, match="too large for this corpus"):
        prepare_and_save(config(folder), TokenizerConfig(vocab_size=8000), 1, folder / "run")
    (folder / "test.tsv").write_text(f"{PAIRS.sources[0].upper()}\tnuevo\n")
    with pytest.raises(UserError, match="train"):
        prepare_and_save(config(folder), CONFIG, 1, folder / "run")
    assert not (folder / "run").exists()


def test_a_run_with_checkpoints_keeps_its_tokenizer(folder):
    first = prepare_and_save(config(folder), CONFIG, 1, folder / "run")
    other = TokenizerConfig(vocab_size=310)
    assert prepare_for_run(folder / "run", config(folder), other, 1).tokenizer.vocab_size == 310
    (folder / "run/checkpoints/3").mkdir(parents=True)
    (folder / "train.tsv").write_text(as_tsv(Pairs(PAIRS.sources[:99], PAIRS.targets[:99])), encoding="utf-8")
    kept = prepare_for_run(folder / "run", config(folder), other, 1)
    assert kept.tokenizer.model == first.tokenizer.model


def test_rows_of_another_length_do_not_move_a_run_to_another_epoch(folder):
    """Where it is depends on the rows that it has seen, and not only while their counts are stored."""
    before = prepare_and_save(config(folder, row_length=96), CONFIG, 1, folder / "run").stream
    third = 2 * before.steps_in(0) + 1
    assert before.epoch_of(third)[0] == 2
    longer = prepare_for_run(folder / "run", config(folder, row_length=192), CONFIG, 1)
    (folder / "run/row_counts.json").unlink(missing_ok=True)
    assert start_after_change(folder / "run", third, before.config, 1, longer) == Start(third, 2, 0)


def test_changes_of_the_data_are_found_and_need_leave_unless_they_are_harmless(folder):
    run = folder / "run"

    def changes(*, allow, **changed):
        new = identify(prepare_for_run(run, config(folder, valid="", test=""), CONFIG, 1).report)
        return find_changes([run / "data.json"], replace(new, **changed), allow)

    prepared = prepare_and_save(config(folder, valid="", test=""), CONFIG, 1, run)
    assert changes(allow=False) == []
    files = identify(prepared.report).files
    told = f"data.test: SHA-256 {files['test'][0][:8]} → ffffffff (harmless)"
    assert changes(allow=False, files=files | {"test": ["f" * 64]}) == [told]
    for allow in (False, True):
        with pytest.raises(UserError, match=r"tokenizer: SHA-256 .* \(incompatible\)"):
            changes(allow=allow, tokenizer="f")
    for changed, kind in (({"files": files | {"valid": ["f"]}}, "validation"), ({"fingerprint": "f"}, "training")):
        with pytest.raises(UserError, match=r"changed since its checkpoints: .*allow_changes=true"):
            changes(allow=False, **changed)
        assert all(line.endswith(f"(changes the {kind})") for line in changes(allow=True, **changed))
    (run / "data.json").write_text("{}")
    with pytest.raises(UserError, match="is missing or damaged"):
        changes(allow=False)
    assert changes(allow=True)[0].endswith("(changes the training)")  # so that what came before is archived


def test_stored_hashes_tell_the_overlap_of_any_set(tmp_path):
    with pytest.raises(UserError, match=r"training_sentences\.npz"):
        overlap_with_training(tmp_path, ["a"], ["b"])
    save_hashes(tmp_path, Sides(hash_sentences(["Go!", "I see."]), hash_sentences(["¡Ve!", "Ya veo."])))
    assert overlap_with_training(tmp_path, ["GO", "go!", "new"], ["ya veo", "¡ve!", "Go!"]) == (1, 2)
    with np.load(tmp_path / "training_sentences.npz", allow_pickle=False) as stored:
        found = {name: (stored[name].dtype, len(stored[name])) for name in stored}
    assert found == {"source": (np.uint64, 2), "target": (np.uint64, 2)}


def test_row_counts_are_stored_as_they_are_found_and_used_by_the_same_batches_alone(folder):
    run = folder / "run"
    prepared = prepare_and_save(config(folder), CONFIG, 1, run)
    stream = prepared.stream
    last = stream.steps_in(0) + stream.steps_in(1) - 1
    again = prepare_for_run(run, config(folder), CONFIG, 1).stream
    assert again.windows.row_counts == stream.windows.row_counts and len(again.windows.row_counts) > 4
    for one, other in zip(again.batch(last), stream.batch(last), strict=True):
        np.testing.assert_array_equal(one, other)
    assert load_row_counts(run, prepare_for_run(run, config(folder), CONFIG, 2).stream.fingerprint) == {}


def test_a_run_directory_that_is_gone_is_not_made_anew_for_row_counts(tmp_path):
    (tmp_path / "run").mkdir()
    stream = stream_of(PAIRS, Tokenizer(train(PAIRS, CONFIG)), config(tmp_path), 3)
    stream.windows.row_counts = RowCounts(tmp_path / "run", stream.fingerprint, {})
    (tmp_path / "run" / "row_counts.json").unlink()
    (tmp_path / "run").rmdir()
    stream.batch(2)
    assert stream.windows.row_counts and not (tmp_path / "run").exists()
