"""Checkpoints: exact, whole or not at all, and damage is seen."""

import hashlib
import itertools
import json
import math
import shutil
import time
from collections import namedtuple
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from data.batches.packing import Batch, slice_rows
from model.config import ModelConfig
from tests.drawn import drawn_state
from tests.saved import save
from training.config import TrainingConfig
from training.progress import Progress, digest_batch
from training.run import checkpoint, manifest, retention, write_trees
from training.run.checkpoint import check_restorable, load_for_inference, read_notes, restore, update_notes
from training.run.manifest import write_manifest
from training.run.retention import damaged_steps, delete_old_checkpoints, find_newest_checkpoint, good_steps
from training.state import Sums

VOCAB = 20
MODEL = ModelConfig(d_model=4, num_heads=1, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=4)
TRAINING = TrainingConfig(steps=10, ema_decay=0.9)


def make_state(step, training=TRAINING):
    state = drawn_state(MODEL, training, VOCAB)
    averaged = state.averaged and jax.tree.map(lambda leaf: leaf * 2, state.params)
    return state._replace(step=state.step + step, averaged=averaged)


def assert_same(some, others):
    jax.tree.map(np.testing.assert_array_equal, some, others)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_what_is_saved_is_restored_bit_for_bit(tmp_path, ema_decay):
    training = TrainingConfig(steps=10, ema_decay=ema_decay)
    state = make_state(7, training)
    save(tmp_path, state, {"best_step": 3})
    assert_same(restore(tmp_path, 7, drawn_state(MODEL, training, VOCAB)), state)
    assert read_notes(tmp_path, 7) == {"best_step": 3}


# Of another version: without sums of source tokens, and with one that was given up since; and without one count.
OtherSums = namedtuple("OtherSums", "smoothed cross_entropy target_tokens gradient_norm steps given_up")
OtherSkipped = namedtuple("OtherSkipped", "in_row in_all")


def test_a_sum_that_an_older_checkpoint_lacks_begins_at_zero_and_one_that_is_no_longer_kept_is_left_out(tmp_path):
    state = make_state(7)
    save(tmp_path, state._replace(sums=OtherSums(*map(jnp.float32, range(1, 7)))), {})
    check_restorable(tmp_path, 7, state)
    restored = restore(tmp_path, 7, state)
    assert isinstance(restored.sums, Sums)
    expected = dict.fromkeys(Sums._fields, 0) | dict(zip(OtherSums._fields[:-1], range(1, 6), strict=True))
    assert {name: float(value) for name, value in restored.sums._asdict().items()} == expected
    assert_same(restored._replace(sums=state.sums), state)
    assert {leaf.sharding for leaf in restored.sums} == {state.sums.steps.sharding}
    jax.jit(lambda sums: sums, donate_argnums=0)(restored.sums)  # as a step does: no two sums share a buffer


def test_anything_else_that_a_checkpoint_lacks_is_refused_before_an_array_is_read(tmp_path):
    state = make_state(7)
    params = {name: leaf for name, leaf in state.params.items() if name != "final_norms"}
    for step, lacking, name in (
        (1, state._replace(params=params), r"final_norms\.0\.bias"),
        (2, state._replace(skipped=OtherSkipped(*state.skipped[:2])), r"skipped\.since_log"),
    ):
        save(tmp_path, lacking._replace(step=state.step * 0 + step), {})
        for read in (check_restorable, restore):
            with pytest.raises(UserError, match=f"model or optimizer than the run's config: {name} is missing"):
                read(tmp_path, step, state)


def test_inference_gets_the_averaged_parameters_of_the_best_step(tmp_path):
    for step, best in ((2, 2), (4, 2)):
        save(tmp_path, make_state(step), {"best_step": best})
    params, manifest = load_for_inference(tmp_path, "best", MODEL, VOCAB)
    assert manifest.step == 2
    assert_same(params, make_state(2).averaged)
    assert load_for_inference(tmp_path, "latest", MODEL, VOCAB)[1].step == 4
    assert load_for_inference(tmp_path, "4", MODEL, VOCAB)[1].step == 4


def test_a_damaged_best_checkpoint_is_not_replaced_by_another_in_silence(tmp_path):
    for step in (2, 4):
        save(tmp_path, make_state(step), {"best_step": 2})
    (tmp_path / "checkpoints" / "2" / "manifest.json").unlink()
    assert damaged_steps(tmp_path) == [2]
    with pytest.raises(UserError, match=r"step 2, is damaged or gone; decoding.checkpoint=latest takes step 4"):
        load_for_inference(tmp_path, "best", MODEL, VOCAB)


@pytest.mark.parametrize("which", ["best", "latest"])
def test_a_damaged_newest_checkpoint_is_not_replaced_by_an_older_one_in_silence(tmp_path, which):
    """The older one says that it is the best, because it was."""
    for step in (2, 4):
        save(tmp_path, make_state(step), {"best_step": step})
    params = tmp_path / "checkpoints/4/params/manifest.ocdbt"
    params.write_bytes(params.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"newest checkpoint of .*, step 4, is damaged; decoding.checkpoint=2 takes"):
        load_for_inference(tmp_path, which, MODEL, VOCAB)
    assert load_for_inference(tmp_path, "2", MODEL, VOCAB)[1].step == 2


def test_leftovers_of_an_interrupted_save_are_not_believed_and_go(tmp_path):
    save(tmp_path, make_state(2), {})
    for leftover in (".3", ".4"):
        shutil.copytree(tmp_path / "checkpoints" / "2", tmp_path / "checkpoints" / leftover)
    assert good_steps(tmp_path) == [2]
    save(tmp_path, make_state(4), {})
    assert good_steps(tmp_path) == [2, 4]
    assert not list((tmp_path / "checkpoints").glob(".*"))


def test_only_what_a_save_left_is_deleted(tmp_path):
    """Of others' folders beside checkpoints, in them, and behind a link."""
    directory = save(tmp_path, make_state(2), {})
    others = [".ssh/id", ".3/id", ".4-old/params/id", ".4-old/id", "2/id"]
    for path in [directory.parent / name for name in others]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a key")
    (directory.parent / ".5").symlink_to(directory)
    save(tmp_path, make_state(6), {})
    delete_old_checkpoints(tmp_path, keep=1, best=0)
    assert all((directory.parent / name).exists() for name in [*others, ".5"])
    for step in (3, 4, 5):
        with pytest.raises(UserError, match=rf"checkpoints/\.{step}(-old)? has other files than a checkpoint, "):
            save(tmp_path, make_state(step), {})
    (directory / "manifest.json").unlink()
    with pytest.raises(UserError, match="checkpoints/2 has other files than a checkpoint"):
        save(tmp_path, make_state(2), {})
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "checkpoints").symlink_to(directory.parent)
    with pytest.raises(UserError, match="linked/checkpoints leads out of the run's directory"):
        save(tmp_path / "linked", make_state(7), {})
    assert all((directory.parent / name).exists() for name in [*others, ".5", "6"])


def test_a_damaged_checkpoint_is_replaced_when_its_step_comes_again(tmp_path):
    path = save(tmp_path, make_state(2), {}) / "manifest.json"
    path.write_text(json.dumps({}))
    save(tmp_path, make_state(2), {"best_step": 2})
    assert read_notes(tmp_path, 2) == {"best_step": 2}
    assert good_steps(tmp_path) == [2]


@pytest.mark.parametrize("content", ["", "{}", "5", "[" * 100_000, '{"use_ocdbt": false, "tree_metadata": {}}'])
def test_damage_that_the_digests_do_not_show_is_named(tmp_path, content):
    directory = save(tmp_path, make_state(2), {})
    for name in ("params", "averaged"):
        (directory / name / "_METADATA").write_text(content)
    write_manifest(directory, 2, {"best_step": "x"})
    told = r"2/\w+ is (damaged, or of another program \(.*: move it away|of another model)"
    for read in (check_restorable, restore):
        with pytest.raises(UserError, match=told):
            read(tmp_path, 2, make_state(2))
    with pytest.raises(UserError, match=told):
        load_for_inference(tmp_path, "latest", MODEL, VOCAB)
    with pytest.raises(UserError, match=r"the best checkpoint of .*, step x, is damaged or gone"):
        load_for_inference(tmp_path, "best", MODEL, VOCAB)


def files_of(run_dir):
    return {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_damage_of_any_file_and_any_bit_of_a_manifest_are_seen(tmp_path):
    directory = save(tmp_path, make_state(2), {"best_step": 2, "best_bleu": 31.5, "seconds": 1e-05})
    files = files_of(directory)
    assert len(files) > 10
    for path, content in files.items():
        places = range(len(content)) if path.name == "manifest.json" else {0, len(content) // 2, len(content) - 1}
        for damage in (content[: len(content) // 2] or b"x", None):
            path.write_bytes(damage) if damage is not None else path.unlink()
            assert good_steps(tmp_path) == [], path
        for place in places if content else ():
            # 1e-05 and 1E-05 are one number, and one bit apart
            for bit in range(8) if content[place : place + 2] == b"e-" else [place % 8]:
                flipped = bytes([content[place] ^ (1 << bit)])
                path.write_bytes(content[:place] + flipped + content[place + 1 :])
                assert good_steps(tmp_path) == [], (path, place, bit)
        path.write_bytes(content)
    assert good_steps(tmp_path) == [2]


def test_a_file_beside_those_that_were_written_is_no_damage(tmp_path):
    directory = save(tmp_path, make_state(2), {})
    (directory / ".manifest.json.123.tmp").write_text("left by a kill while the notes were written")
    assert good_steps(tmp_path) == [2]


def test_the_newest_good_checkpoint_is_found_with_a_warning(tmp_path, capsys):
    assert find_newest_checkpoint(tmp_path) is None
    for step in (2, 4, 6):
        save(tmp_path, make_state(step), {})
    assert find_newest_checkpoint(tmp_path) == 6 and capsys.readouterr().err == ""
    (tmp_path / "checkpoints" / "6" / "manifest.json").write_text("")
    assert find_newest_checkpoint(tmp_path) == 4
    assert "has damaged checkpoints: 6; continuing from step 4" in capsys.readouterr().err


def test_without_a_good_checkpoint_nothing_is_deleted_and_nothing_begins(tmp_path):
    for step in (2, 4):
        (save(tmp_path, make_state(step), {}) / "manifest.json").write_text("{}")
    before = files_of(tmp_path)
    with pytest.raises(UserError, match="has damaged checkpoints: 2, 4, and no good one; nothing was deleted"):
        find_newest_checkpoint(tmp_path)
    delete_old_checkpoints(tmp_path, keep=1, best=0)
    assert files_of(tmp_path) == before


@pytest.mark.slow
def test_retention_never_deletes_what_cannot_be_read_nor_what_is_no_checkpoint_of_its_own(tmp_path):
    for step in (1, 2, 3, 4, 5):
        save(tmp_path, make_state(step), {})
    (tmp_path / "checkpoints" / "2" / "manifest.json").unlink()
    shutil.copytree(tmp_path / "checkpoints" / "3", tmp_path / "checkpoints" / "liked")
    delete_old_checkpoints(tmp_path, keep=2, best=1)
    there = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert there == ["1", "2", "4", "5", "liked"]


def test_a_bleu_that_is_not_a_number_is_never_the_best_and_counts_as_no_better():
    start = Progress().after_evaluation(2, math.nan, 3.0)
    progress = start.after_evaluation(4, 12.0, 2.0).after_evaluation(6, math.nan, 1.0)
    assert (start.best_step, progress.best_step, progress.best_bleu, progress.stale) == (0, 4, 12.0, 1)
    assert progress.is_exhausted(1) and not progress.is_exhausted(2) and not progress.is_exhausted(0)


@pytest.mark.parametrize(
    ("losses", "best", "stale"),
    [
        ([4.0, 3.0, 2.0], 6, 0),  # BLEU 0.00 while the model learns
        ([2.0, 3.0, 4.0], 2, 2),
        ([2.0, 2.0, 2.0], 6, 2),  # nothing changes any more: the later, and early stopping goes on waiting
        ([math.nan, 3.0, math.nan], 4, 1),
        ([math.nan, math.inf, math.nan], 6, 2),
    ],
)
def test_of_equal_bleu_the_lower_loss_is_the_best_and_of_equal_losses_the_later(losses, best, stale):
    progress = Progress()
    for step, loss in zip((2, 4, 6), losses, strict=True):
        progress = progress.after_evaluation(step, 0.0, loss)
    assert (progress.best_step, progress.stale, progress.evaluated) == (best, stale, 6)
    assert progress.after_evaluation(8, 0.1, math.nan).best_step == 8


def test_the_best_loss_is_recorded_in_a_checkpoint_and_one_without_it_is_read(tmp_path):
    progress = Progress().after_evaluation(2, 5.0, 1.5)
    save(tmp_path, make_state(2), progress.to_notes())
    assert Progress.from_notes(read_notes(tmp_path, 2)) == progress
    old = {"best_bleu": 5.0, "best_step": 2, "stale": 0, "evaluated": 2, "seconds": 1.0, "batches": "0" * 64}
    assert Progress.from_notes(old).after_evaluation(4, 5.0, 9.0).best_step == 4
    assert Progress.from_notes(old).after_evaluation(4, 4.9, 1.0).best_step == 2


def test_notes_are_put_into_a_good_checkpoint_and_leave_it_good(tmp_path):
    save(tmp_path, make_state(2), {"best_step": 0})
    before = files_of(tmp_path)
    update_notes(tmp_path, 2, {"best_step": 2})
    assert read_notes(tmp_path, 2) == {"best_step": 2} and good_steps(tmp_path) == [2]
    changed = {path.name for path, content in files_of(tmp_path).items() if before.get(path) != content}
    assert changed == {"manifest.json"}


def test_a_checkpoint_of_another_model_is_refused_with_the_first_difference(tmp_path):
    save(tmp_path, make_state(2), {})
    other = ModelConfig(**(vars(MODEL) | {"d_ff": 8}))
    told = r"has a different model .*decoder\.0\.feed_forward\.down\.kernel is \(4, 4\) in the"
    with pytest.raises(UserError, match=told):
        load_for_inference(tmp_path, "latest", other, VOCAB)
    deeper = ModelConfig(**(vars(MODEL) | {"encoder_layers": 2}))
    with pytest.raises(UserError, match=r"encoder\.1\.[a-z_.]+ is missing in the checkpoint, and \(4,\) by the config"):
        restore(tmp_path, 2, drawn_state(deeper, TRAINING, VOCAB))
    told = r"different model or optimizer .* opt_state\.1\.1\.count is \(\) in the checkpoint"
    with pytest.raises(UserError, match=told):
        restore(tmp_path, 2, drawn_state(MODEL, replace(TRAINING, optimizer="adamw"), VOCAB))
    freer = replace(TRAINING, clip_norm=0.0, schedule="cosine", learning_rate=0.1)  # what may change fits
    assert restore(tmp_path, 2, drawn_state(MODEL, freer, VOCAB)).step == 2


def test_a_checkpoint_that_training_removes_while_it_is_read_is_replaced_by_the_newer(tmp_path, monkeypatch):
    save(tmp_path, make_state(2), {"best_step": 0})
    find = retention.find_for_inference

    def find_then_lose(run_dir, which):
        directory = find(run_dir, which)
        if directory.name == "2":
            save(tmp_path, make_state(4), {"best_step": 0})
            delete_old_checkpoints(tmp_path, keep=1, best=4)
        return directory

    monkeypatch.setattr(checkpoint, "find_for_inference", find_then_lose)
    params, manifest = load_for_inference(tmp_path, "latest", MODEL, VOCAB)
    assert manifest.step == 4
    assert_same(params, make_state(4).averaged)


def test_a_disk_without_room_is_told_before_anything_is_written(tmp_path, monkeypatch):
    save(tmp_path, make_state(2), {})
    before = files_of(tmp_path)
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match=r"checkpoints/4 \(earlier ones are as they were\): No space left .* make room"):
        save(tmp_path, make_state(4), {})
    assert files_of(tmp_path) == before and good_steps(tmp_path) == [2]
    assert not list((tmp_path / "checkpoints").glob(".*"))


def test_a_run_that_is_moved_while_a_checkpoint_is_written_gets_none_in_its_old_place(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()

    def write_and_move(*arguments):
        manifest.write_manifest(*arguments)
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        shutil.copytree(tmp_path / "elsewhere", tmp_path / "run")

    monkeypatch.setattr(write_trees, "write_manifest", write_and_move)
    with pytest.raises(UserError, match="run was moved or unmounted; is its disk still there"):
        save(tmp_path / "run", make_state(2), {})
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_a_clock_that_is_set_right_during_a_save_does_not_end_it(tmp_path, monkeypatch):
    """It is an hour later whenever somebody asks."""
    hours, real = itertools.count(), time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * next(hours))
    save(tmp_path, make_state(2), {})
    assert good_steps(tmp_path) == [2]


def test_a_save_that_fails_in_the_middle_leaves_no_half(tmp_path, monkeypatch):
    save(tmp_path, make_state(2), {})
    monkeypatch.setattr(write_trees, "flush_folder", lambda directory: (_ for _ in ()).throw(OSError(5, "I/O error")))
    with pytest.raises(UserError, match="I/O error; is its disk still there"):
        save(tmp_path, make_state(4), {})
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["2"]


def test_the_sequence_of_batches_is_a_sum_of_sha256_over_rows_their_places_and_steps():
    batches = [Batch(*(np.full((2, 3), number + field, np.int32) for field in range(7))) for number in (10, 20)]
    rows = [0, 0]  # of two processes, each with one row of every batch
    for step, batch in enumerate(batches, 1):
        for row in range(2):
            content = f"{step} {row}".encode() + b"".join(array[row].tobytes() for array in batch)
            digest = int(hashlib.sha256(content).hexdigest(), 16)
            assert digest_batch(slice_rows(batch, slice(row, row + 1)), step, row) == digest
            assert digest_batch(batch, step, counted={row}) == digest  # of both rows, it counts one
            rows[row] += digest
    first, second = batches
    progress = Progress().after_batch(digest_batch(first, 1)).after_batch(digest_batch(second, 2))
    assert progress.batches == f"{sum(rows) % 2**256:064x}"
