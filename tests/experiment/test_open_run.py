"""What a run directory holds before and after commands that are refused, and where a run that was moved goes on."""

import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import train as train_program
from common.errors import UserError
from configs.load import load_config, load_run_config, save_config
from configs.schema import RunConfig
from experiment.load_run import load_experiment, load_run
from experiment.open_run import check_run, find_devices, open_run
from tests.data.batches.test_epochs import sentences
from tests.drawn import drawn_state
from tests.prepared import prepare_and_save
from tests.saved import save
from train import train
from training.progress import Progress
from training.run.checkpoint import read_notes, update_notes
from training.run.corpus import load_hashes, load_identity, prepare_for_run
from training.run.layout import checkpoint_path

LEARNED = ["model.positions=learned", "model.max_positions=64"]


@pytest.fixture(scope="module")
def started(small_experiment, tmp_path_factory):
    """A corpus with its config, and a run of it with learned positions and a checkpoint at step 4."""
    folder = tmp_path_factory.mktemp("refused")
    shutil.copytree(small_experiment.parent, folder / "corpus", ignore=shutil.ignore_patterns("run"))
    run = folder / "run"
    config = load_config(folder / "corpus" / "small.yaml", overridden(folder))
    prepare_and_save(config.data, config.tokenizer, config.training.seed, run)
    save_config(config, run / "config.yaml")
    (run / "metrics.jsonl").write_text('{"step": 4, "kind": "train"}\n{"step": 5, "kind": "train"}\n')
    (run / "log.txt").write_text("step 5\n")
    for name in ("config.yaml", "data.json"):  # of steps beyond the checkpoint, to be taken again
        shutil.copy(run / name, (run / name).with_stem(f"{Path(name).stem}.until-6"))
    state = drawn_state(config.model, config.training, 300)
    save(run, state._replace(step=state.step + 4), Progress().to_notes())
    return folder


@pytest.fixture
def here(started, tmp_path, monkeypatch):
    """A copy of them for one test, whose config says where it is. A run that is only opened compiles no step."""
    monkeypatch.setattr("experiment.open_run.compile_ahead", lambda step, *_: step)
    here = tmp_path / "here"
    shutil.copytree(started, here)
    saved = here / "run" / "config.yaml"
    save_config(load_config(saved, overridden(here)), saved)
    return here


def content(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder but the lock's."""
    passing = {".lock", "process.json"}
    found = sorted(path for path in folder.rglob("*") if path.name not in passing)
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in found}


def overridden(here: Path, *overrides: str) -> list[str]:
    return [*LEARNED, f"data.root={here / 'corpus'}", f"run_dir={here / 'run'}", *overrides]


def config_of(here: Path, *overrides: str) -> RunConfig:
    return load_config(here / "corpus" / "small.yaml", overridden(here, *overrides))


def of_another_width(run: Path) -> None:
    """The checkpoint becomes one of a model that its config does not describe."""
    config = load_run_config(run, ["model.d_ff=40"])
    state = drawn_state(config.model, config.training, 300)
    shutil.rmtree(checkpoint_path(run, 4))
    save(run, state._replace(step=state.step + 4), Progress().to_notes())


@pytest.mark.parametrize("name", ["checkpoints", "eval", "held_out", "profile", "metrics.jsonl", "log.txt"])
def test_a_run_does_not_train_through_a_link_out_of_its_directory(small_experiment, tmp_path, name):
    (tmp_path / "home" / ".config").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / ("nothing" if "." in name else "home"))
    before = content(tmp_path)
    with pytest.raises(UserError, match=f"run/{name} leads out of the run's directory, .* move it away; run_dir="):
        train(load_config(small_experiment, [f"run_dir={tmp_path / 'run'}"]))
    (tmp_path / "run" / name).unlink()
    os.mkfifo(tmp_path / "run" / name)
    with pytest.raises(UserError, match=f"run/{name} leads out of"):
        train(load_config(small_experiment, [f"run_dir={tmp_path / 'run'}"]))
    (tmp_path / "run" / name).unlink()
    assert content(tmp_path) == {path: found for path, found in before.items() if path != f"run/{name}"}


def with_other_pairs(corpus: Path, name: str) -> None:
    (corpus / name).write_text((corpus / name).read_text().replace(".\t", "?\t"))


def with_longer_pairs(path: Path) -> None:
    """Each side of each pair eight times, one after the other."""
    pairs = (line.split("\t") for line in path.read_text().splitlines())
    path.write_text("".join("\t".join(" ".join([side] * 8) for side in pair) + "\n" for pair in pairs))


LEARN_FASTER = ["training.learning_rate=0.5", "allow_changes=true"]
REFUSED = {
    "an incompatible key": (["model.d_ff=64"], None, "model.d_ff: 32 → 64 (incompatible)"),
    "a change that is not asked for": (["training.learning_rate=0.5"], None, "(changes the training)"),
    "another model in the checkpoint": (
        LEARN_FASTER,
        lambda here: of_another_width(here / "run"),
        "has a different model or optimizer than the run's config",
    ),
    "other training pairs": ([], lambda here: with_other_pairs(here / "corpus", "train.tsv"), "data.train: SHA-256"),
    "another validation set": ([], lambda here: with_other_pairs(here / "corpus", "valid.tsv"), "data.valid: SHA-256"),
    "no corpus": (LEARN_FASTER, lambda here: (here / "corpus" / "train.tsv").unlink(), "no train file at"),
    "rows beyond the positions": (
        [*LEARN_FASTER, "data.row_length=128"],
        lambda here: with_longer_pairs(here / "corpus" / "train.tsv"),
        "model.max_positions=64 ends before the longest row",
    ),
    "an ensemble": ([*LEARN_FASTER, "decoding.ensemble=[other]"], None, "decoding.ensemble is for trained runs"),
    "a kernel that cannot": ([*LEARN_FASTER, "model.kernel=tpu"], None, "kernel tpu needs a TPU"),
    "a damaged record": ([], lambda here: (here / "run" / "data.json").write_text("{}"), "data.json is missing"),
    "a lost tokenizer": (LEARN_FASTER, lambda here: (here / "run" / "tokenizer.json").unlink(), "tokenizer.json"),
    "damaged checkpoints": (
        LEARN_FASTER,
        lambda here: (checkpoint_path(here / "run", 4) / "manifest.json").write_text("{}"),
        "and no good one",
    ),
}


@pytest.mark.parametrize(("overrides", "change", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_continuation_that_is_refused_leaves_every_file_as_it_was(here, overrides, change, problem):
    if change:
        change(here)
    before = content(here)
    config = config_of(here, *overrides)
    with pytest.raises(UserError) as refusal:
        train(config)
    assert problem in str(refusal.value)
    assert content(here) == before


def test_a_change_that_no_checkpoint_has_can_be_undone(here):
    """The command of before works again after one with a change that ended without a checkpoint, as in no memory."""
    for path in (here / "run").glob("*.until-6.*"):
        path.unlink()
    before, pairs = load_identity(here / "run" / "data.json"), (here / "corpus" / "train.tsv").read_bytes()
    plain, faster = (config_of(here, *more, "training.steps=4") for more in ([], LEARN_FASTER))
    with_other_pairs(here / "corpus", "train.tsv")
    with open_run(faster, find_devices(faster)):
        pass
    assert load_identity(here / "run" / "data.json") != before
    (here / "corpus" / "train.tsv").write_bytes(pairs)
    with open_run(plain, find_devices(plain)):
        pass
    assert load_identity(here / "run" / "data.json") == before
    assert load_run_config(here / "run") == plain
    told = (here / "run" / "log.txt").read_text()
    assert "from step 4 with training.learning_rate: 0.5 → 0.001 (undone: no checkpoint has it)" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "change", "anew"),
    [
        (["training.label_smoothing=0.2", "data.batch_rows=3"], None, False),
        (["decoding.batch_sentences=5"], None, False),
        (["decoding.beam_size=1"], None, True),
        ([], "valid.tsv", True),
        (["data.valid=test.tsv", "data.allow_overlap=[valid/test]"], None, True),
        ([], "train.tsv", True),
    ],
)
def test_scores_that_do_not_compare_choose_the_best_checkpoint_anew(here, overrides, change, anew):
    """However often the run is opened before its next checkpoint; the best step of before stays until then."""
    update_notes(here / "run", 4, Progress(best_bleu=50.0, best_loss=1.0, best_step=4, stale=2).to_notes())
    if change:
        with_other_pairs(here / "corpus", change)
    config = config_of(here, *overrides, "allow_changes=true")
    for again in range(2):
        with open_run(replace(config, allow_changes=not again), find_devices(config)) as run:
            later = run.progress.after_evaluation(6, 1.0, 9.0)
            assert (run.progress.best_step, later.best_step, later.stale) == ((4, 6, 0) if anew else (4, 4, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "moved"),
    [
        (["training.steps=20"], ""),
        (["training.learning_rate=0.5"], "test test-0a valid"),
        (["decoding.beam_size=1"], "test test-0a valid"),
        (["data.test=other.tsv"], "test test-0a"),
    ],
)
def test_reports_that_score_another_model_or_test_set_are_set_aside(here, overrides, moved):
    """With the sentences beside them; the second time there are none."""
    reports, endings = here / "run/eval", (".json", ".jsonl", ".translations.txt")
    reports.mkdir()
    names = {f"{name}{ending}" for name in ("test", "test-0a", "valid") for ending in endings}
    for name in names:
        (reports / name).write_text(name)
    (here / "corpus/other.tsv").write_text("Tom naps.\t¡Tomás!\n", encoding="utf-8")
    config = config_of(here, *overrides, "allow_changes=true")
    for again in range(2):
        with open_run(replace(config, allow_changes=not again), find_devices(config)):
            aside = {path.name: path.read_text() for path in reports.glob("until-4/*")}
            expected = {f"{name}{ending}" for name in moved.split() for ending in endings}
            assert aside == {name: name for name in expected}
            assert {path.name for path in reports.iterdir() if path.is_file()} == names - expected
    told = (here / "run" / "log.txt").read_text()
    assert told.count("earlier reports are now in") == bool(moved)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "change", "told"),
    [
        (["training.learning_rate=0.5"], None, ""),
        (["data.batch_rows=6"], None, "the rest of epoch 1, from its row 9 on"),  # after 4 updates of 2 rows
        (["data.window=20"], None, "epoch 1, from its beginning"),
        ([], "train.tsv", "epoch 1, from its beginning"),
    ],
)
def test_a_run_goes_on_where_it_is_in_its_data(here, overrides, change, told):
    """Not where the same number of other updates would have come, whether it is opened once or again."""
    if change:
        with_other_pairs(here / "corpus", change)
    by_epochs = "training.schedule=constant", "training.epochs=1", "training.steps=0"
    config = config_of(here, *overrides, "allow_changes=true", *by_epochs)
    before = prepare_for_run(here / "run", load_run_config(here / "run").data, config.tokenizer, config.training.seed)
    for again in range(2):
        with open_run(replace(config, allow_changes=not again), find_devices(config)) as run:
            steps = run.schedule.expected_end(4)
            assert [run.schedule.is_last(step) for step in (steps - 1, steps)] == [False, True]
            batches = map(run.schedule.stream.batch, range(4, steps))
            seen = Counter(pair for batch in batches for pair in sentences(batch, run.schedule.stream.tokenizer))
    if (change is None and told.startswith("the rest")) or not told:
        seen += Counter(pair for step in range(4) for pair in sentences(before.stream.batch(step), before.tokenizer))
    texts = run.schedule.stream.encoded.texts
    assert sorted(seen.elements()) == sorted(zip(texts.sources, texts.targets, strict=True))
    log = (here / "run/log.txt").read_text()
    assert told in log and ("from step 4 with epoch" in log or "with the rest" in log) == bool(told)
    assert load_run(here / "run").recorded.setup(5).stream.start == run.schedule.stream.start


@pytest.mark.slow
def test_a_checkpoint_from_before_such_a_change_is_judged_anew_too(here):
    """The change was made after step 6, whose checkpoint is lost."""
    update_notes(here / "run", 4, Progress(best_bleu=50.0, best_step=4).to_notes())
    config = config_of(here, "decoding.beam_size=1")
    save_config(config, here / "run" / "config.yaml")
    with open_run(config, find_devices(config)) as run:
        assert run.progress.best_bleu < 0


@pytest.mark.slow
def test_a_run_has_seen_the_sentences_of_every_corpus_that_it_was_trained_on(here):
    first = load_hashes(here / "run")
    pairs = here / "corpus" / "train.tsv"
    rows = [line.rstrip("\n").split("\t") for line in pairs.open(encoding="utf-8")]
    pairs.write_text("".join(f"{source[::-1]}\t{target}\n" for source, target in rows))
    config = config_of(here, "allow_changes=true")
    for _ in range(2):
        with open_run(config, find_devices(config)):
            pass
    both = load_hashes(here / "run")
    sides = [(first.source, both.source), (first.target, both.target)]
    assert [len(np.setdiff1d(old, new)) for old, new in sides] == [0, 0]
    assert [len(new) - len(old) for old, new in sides] == [len(first.source), 0]


@pytest.mark.slow
def test_a_run_that_ends_before_its_newest_checkpoint_is_evaluated_there(here):
    """As after Ctrl-C at step 4, when 3 steps were found to be enough."""
    config = config_of(here, "training.steps=3")
    train(config)
    notes = read_notes(here / "run", 4)
    assert (notes["evaluated"], notes["best_step"]) == (4, 4)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_a_schedule_that_ends_takes_no_epochs(small_experiment, schedule):
    """The config itself is valid, so that an older run of such a config still translates."""
    config = load_config(small_experiment, [f"training.schedule={schedule}", "training.epochs=2"])
    if schedule == "constant":
        return check_run(config)
    with pytest.raises(UserError, match=f"training.schedule={schedule} falls to zero .* set training.epochs=0"):
        check_run(config)


def test_a_new_run_that_is_refused_leaves_nothing(here):
    overrides = ["model.positions=learned", "model.max_positions=8", f"run_dir={here / 'new'}"]
    before = content(here)
    with pytest.raises(UserError, match=r"model\.max_positions=8 ends before the longest row"):
        train(load_config(here / "corpus" / "small.yaml", [*overrides, f"data.root={here / 'corpus'}"]))
    assert content(here) == before


@pytest.mark.parametrize("key", ["d_model", "d_ff", "num_heads", "head_dim"])
def test_a_model_that_no_memory_holds_is_refused_by_arithmetic(small_experiment, tmp_path, key):
    config = load_config(small_experiment, [f"model.{key}=2000000000", f"run_dir={tmp_path / 'run'}"])
    needs = r"^training [\d,]{13,} parameters needs about \d+\.\d\d GiB of \d+\.\d\d GiB: too much"
    with pytest.raises(UserError, match=needs):
        train(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("is_copy", [False, True], ids=["moved", "copied"])
def test_the_config_of_a_run_that_was_moved_or_copied_is_refused_with_the_command_that_goes_on(
    here, is_copy, monkeypatch, refuses
):
    (shutil.copytree if is_copy else shutil.move)(here / "run", here / "my run")
    before, path = content(here), here / "my run" / "config.yaml"
    told = (
        f"error: {path} belongs to a run that was moved or copied: its run_dir is {here / 'run'}. To use the run where "
        f"it is now: python train.py '{path}' training.steps=4 'run_dir={here / 'my run'}'\n"
    )
    refuses(train_program.main, told, path, "training.steps=4")
    assert content(here) == before

    config = load_experiment("train.py", str(path), [f"run_dir={here / 'my run'}"])
    assert config.run_dir == str(here / "my run")
    monkeypatch.chdir(here / "my run")
    with pytest.raises(UserError, match=r"python train\.py config\.yaml run_dir=\.$"):
        load_experiment("train.py", "config.yaml", [])


def test_the_config_of_a_run_in_its_place_and_one_that_is_no_runs_are_taken_as_they_are(here, monkeypatch):
    path = here / "run" / "config.yaml"
    assert load_experiment("train.py", str(path), []).run_dir == str(here / "run")
    (here / "link").symlink_to(here / "run")
    assert load_experiment("train.py", str(here / "link" / "config.yaml"), []).run_dir == str(here / "run")
    (here / "other").mkdir()
    shutil.copy(path, here / "other" / "config.yaml")  # a config to begin with, without checkpoints
    assert load_experiment("train.py", str(here / "other" / "config.yaml"), []).run_dir == str(here / "run")
    monkeypatch.chdir(here)
    assert load_experiment("train.py", os.path.relpath(path), []).run_dir == str(here / "run")
