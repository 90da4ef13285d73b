"""Does each promise of docs/reliability.md have a test that would see it broken? python -m tests.mutations [WORD …]

Each line below breaks the code in one place, in a copy of the working tree; the named test must then fail, and pass
without. With WORDs, only mutations whose line has one of them run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    """In ``file``, ``old`` (once there) becomes ``new``; ``test`` must fail."""

    promise: str
    file: str
    old: str
    new: str
    test: str


STATE, CHECKPOINT, TRAIN = (
    "tests/training/test_state.py",
    "tests/training/run/test_checkpoint.py",
    "tests/test_train.py",
)
LOCK, SIGNALS, MONITOR, LINES = (
    "tests/training/run/test_lock.py",
    "tests/common/test_signals.py",
    "tests/training/run/test_metrics.py",
    "tests/training/run/test_log.py",
)
CORPORA, CONFIGS, TABLES = (
    "tests/data/test_hostile.py",
    "tests/configs/test_hostile.py",
    "tests/common/test_text_table.py",
)
SAVES, KEPT = "tests/training/run/test_background_save.py", "tests/data/test_kept_corpus.py"
TRANSLATE, COMPILATION = "tests/scripts/test_translate.py", "tests/training/devices/test_compilation.py"
KEY_NAMES, LOADING = "tests/configs/test_keys.py", "tests/configs/test_load.py"
CHANGES, FILES, PROOF = (
    "tests/configs/test_changes.py",
    "tests/common/test_files.py",
    "tests/scripts/test_prove_resume.py",
)
OPENING, CHOICES = "tests/experiment/test_open_run.py", "tests/test_choices.py"
_NOT_FINITE = f"{STATE}::test_an_update_that_is_not_finite_is_counted_and_changes_nothing_else"
_IN_EVALUATION = f"{TRAIN}::test_a_signal_in_an_evaluation_loses_nothing"
_DAMAGED = f"{TRAIN}::test_a_damaged_newest_checkpoint_is_passed_over_and_the_run_ends_as_without_damage"
_CHANGED = f"{TRAIN}::test_a_run_goes_on_with_another_config_or_corpus_only_as_far_as_they_allow"
_SIGTERM = f"{TRAIN}::test_sigterm_ends_the_step_saves_and_says_how_to_go_on_and_a_second_ctrl_c_kills"
_REPLAY = "tests/scripts/test_replay.py"
_TABLE, _ENCODINGS = "tests/data/sources/test_table.py", "tests/data/sources/test_encodings.py"
_DOUBTS = "tests/data/corpus/test_warnings.py"
_MONSTER = f"{CONFIGS}::test_every_monster_is_refused_in_one_short_line"
_MILLION = f"{CORPORA}::test_a_million_characters_on_a_line_are_dropped_counted_and_change_nothing_else"
_HASHES = f"{CORPORA}::test_damaged_hashes_are_named_and_never_unpickled"
_OTHER_MODEL = f"{CHECKPOINT}::test_a_checkpoint_of_another_model_is_refused_with_the_first_difference"

MUTATIONS = [
    # Resuming is exact.
    Mutation(
        "batches go on where they were",
        "train.py",
        "prefetch(stream, step, run",
        "prefetch(stream, 0, run",
        _DAMAGED,
    ),
    Mutation(
        "sums between two lines of metrics survive",
        "training/run/checkpoint.py",
        'averaged, sums, rest["skipped"])',
        'averaged, like.sums, rest["skipped"])',
        _DAMAGED,
    ),
    Mutation(
        "the optimizer's state survives",
        "training/run/checkpoint.py",
        'parts["params"], rest["opt_state"], averaged',
        'parts["params"], like.opt_state, averaged',
        _DAMAGED,
    ),
    Mutation(
        "dropout goes on where it was",
        "training/step.py",
        "key = jax.random.fold_in(root_key, step)",
        "key = root_key",
        f"{STATE}::test_dropout_differs_between_steps_and_seeds_but_not_between_runs",
    ),
    Mutation(
        "an evaluation that was cut off is made again",
        "train.py",
        "        if evaluation_due():\n            progress = validate(run, state, progress, pause)\n        while",
        "        while",
        _IN_EVALUATION,
    ),
    Mutation(
        "no line of metrics twice",
        "training/run/metrics.py",
        "<= (step, evaluated)]",
        "<= (step, True)]",
        f"{MONITOR}::test_the_evaluation_of_a_step_goes_too_where_it_was_not_finished",
    ),
    Mutation(
        "what was evaluated is known after a restart",
        "experiment/open_run.py",
        "Monitor(run_dir, step, last_step, evaluated=progress.evaluated == step)",
        "Monitor(run_dir, step, last_step, evaluated=True)",
        _IN_EVALUATION,
    ),
    Mutation(
        "the digest of batches has every batch",
        "training/progress.py",
        "(int(self.batches, 16) + digest)",
        "digest",
        f"{CHECKPOINT}::test_the_sequence_of_batches_is_a_sum_of_sha256_over_rows_their_places_and_steps",
    ),
    Mutation(
        "the proof sees other bits of equal numbers",
        "training/replay/run_digest.py",
        "digest.update(np.ascontiguousarray(leaf).data)",
        "digest.update(np.asarray(leaf).round(1).tobytes())",
        f"{PROOF}::test_every_difference_is_seen",
    ),
    # Damage.
    Mutation(
        "every file is checked",
        "training/run/atomic_save.py",
        "return listed == {name: sha256_of_file(directory / name) for name in listed}",
        "return all((directory / name).exists() for name in listed)",
        f"{CHECKPOINT}::test_every_damaged_file_is_seen",
    ),
    Mutation(
        "the manifest checks itself",
        "training/run/atomic_save.py",
        "if manifest is None or manifest.to_json() != text:",
        "if manifest is None:",
        f"{CHECKPOINT}::test_every_flipped_bit_of_a_manifest_and_some_of_every_other_file_are_seen",
    ),
    Mutation(
        "every bit of the manifest counts",
        "training/run/atomic_save.py",
        "manifest.to_json() != text:",
        "json.loads(manifest.to_json()) != facts:",
        f"{CHECKPOINT}::test_every_flipped_bit_of_a_manifest_and_some_of_every_other_file_are_seen",
    ),
    Mutation(
        "without a good checkpoint nothing begins anew",
        "training/run/checkpoints.py",
        '        if not good:\n            raise UserError(f"{problem}, and',
        '        if False:\n            raise UserError(f"{problem}, and',
        f"{CHECKPOINT}::test_without_a_good_checkpoint_nothing_is_deleted_and_nothing_begins",
    ),
    Mutation(
        "damage is told",
        "training/run/checkpoints.py",
        'write_note(f"warning: {problem}; continuing from step {good[-1]}")',
        "pass",
        f"{CHECKPOINT}::test_the_newest_good_checkpoint_is_found_with_a_warning",
    ),
    Mutation(
        "another model's checkpoint is refused",
        "training/run/checkpoint.py",
        "    _check_shapes(directory, like)\n    target",
        "    target",
        _OTHER_MODEL,
    ),
    Mutation(
        "a checkpoint that goes while it is read is found again",
        "training/run/checkpoint.py",
        "ATTEMPTS = 3",
        "ATTEMPTS = 1",
        f"{CHECKPOINT}::test_a_checkpoint_that_training_removes_while_it_is_read_is_replaced_by_the_newer",
    ),
    # Retention.
    Mutation(
        "the best is kept",
        "training/run/checkpoints.py",
        "(newer >= keep and step == best) or not",
        "not",
        f"{CHECKPOINT}::test_retention",
    ),
    Mutation(
        "what cannot be read is not deleted",
        "training/run/checkpoints.py",
        "step == best) or not is_intact(directory):",
        "step == best):",
        f"{CHECKPOINT}::test_retention_never_deletes_what_cannot_be_read_nor_what_is_no_checkpoint_of_its_own",
    ),
    Mutation(
        "NaN is never the best",
        "training/progress.py",
        "-math.inf if math.isnan(bleu) else bleu",
        "math.inf if math.isnan(bleu) else bleu",
        f"{CHECKPOINT}::test_a_bleu_that_is_not_a_number_is_never_the_best_and_counts_as_no_better",
    ),
    Mutation(
        "of equal BLEU the lower loss is the best",
        "training/progress.py",
        "waited if new < best else",
        "waited if new[0] <= best[0] else",
        f"{CHECKPOINT}::test_of_equal_bleu_the_lower_loss_is_the_best_and_of_equal_losses_the_later",
    ),
    Mutation(
        "a model that no longer changes stops early",
        "training/progress.py",
        "0 if new > best else",
        "0 if new >= best else",
        f"{CHECKPOINT}::test_of_equal_bleu_the_lower_loss_is_the_best_and_of_equal_losses_the_later",
    ),
    # Scores.
    Mutation(
        "no other set or search replaces the run's own report",
        "evaluation/conditions.py",
        "    if own and (not",
        "    if True or (not",
        "tests/evaluation/test_conditions.py::test_each_set_and_search_has_a_report_of_its_own_in_any_order",
    ),
    Mutation(
        "the precision is part of a report's conditions",
        "experiment/own_reports.py",
        "Precision(config.model.dtype, config.model.matmul_dtype)",
        "Precision()",
        "tests/experiment/test_own_reports.py::test_every_setting_of_eval_py_is_part_of_the_conditions",
    ),
    Mutation(
        "a report of an older version is not replaced",
        "evaluation/conditions.py",
        "(not plain.exists() or conditions.are_those_of(read_json_object(plain)))",
        "True",
        "tests/evaluation/test_conditions.py"
        "::test_a_report_of_an_older_version_on_another_set_or_search_is_not_replaced",
    ),
    Mutation(
        "the quickstart shows reports on its own sets only",
        "scripts/quickstart.py",
        "        if path is None:",
        '        path = RUN / "eval/test.json"\n        if path is None:',
        "tests/scripts/test_quickstart.py::test_reports_of_older_versions_are_shown_and_only_those_of_its_own_sets",
    ),
    Mutation(
        "scores are printed before anything is written",
        "eval.py",
        '    print(f"{run_dir} at step',
        '    write(run, run_dir, run_dir / "eval", evaluation, file, overlap)\n    print(f"{run_dir} at step',
        "tests/scripts/test_eval.py::test_scores_are_printed_although_the_report_cannot_be_written",
    ),
    Mutation(
        "reports of two runs in one folder stay apart",
        "eval.py",
        "else str(run_dir.resolve())",
        'else ""',
        "tests/scripts/test_eval.py::test_reports_of_two_runs_in_one_folder",
    ),
    Mutation(
        "dropped rows of a test set are told",
        "data/corpus/report.py",
        "    if not unscored:",
        "    if report.rows:",
        "tests/scripts/test_eval.py::test_bad_lines_of_another_file_can_be_skipped_and_are_counted",
    ),
    Mutation(
        "blank lines of a test set are told too",
        "data/corpus/report.py",
        "unscored = report.malformed + report.empty",
        "unscored = report.malformed",
        "tests/scripts/test_eval.py::test_a_set_of_which_too_much_would_be_dropped_has_no_score_unless_asked_for",
    ),
    Mutation(
        "eval.py does not ignore run_dir=",
        "experiment/load_run.py",
        "if key in {each.name for each in RUN_KEYS}:",
        "if False:",
        "tests/scripts/test_eval.py::test_mistakes_end_in_one_line_and_code_2",
    ),
    # Languages.
    Mutation(
        "exchanged columns are told",
        "data/corpus/language.py",
        "sides[0] != source and sides[1] == source",
        "sides[0] == sides[1] == source",
        "tests/data/corpus/test_language.py::test_every_exchanged_sentence_that_shows_its_language_is_seen",
    ),
    Mutation(
        "columns in order are not suspected",
        "data/corpus/language.py",
        "    if english == spanish:\n        return None\n",
        "",
        "tests/data/corpus/test_language.py::test_evidence_is_needed_on_both_sides",
    ),
    Mutation(
        "exchanged columns are told before training",
        "data/corpus/warnings.py",
        "return [*lines, *unscored]",
        "return unscored",
        "tests/experiment/test_warnings.py::test_a_corpus_in_the_wrong_direction_is_told_before_training",
    ),
    Mutation(
        "exchanged columns are told before scores of given translations",
        "scripts/score.py",
        "if lines == 0:",
        "if False:",
        "tests/scripts/test_score.py::test_exchanged_columns_are_told",
    ),
    # Signals.
    Mutation("SIGTERM is heard", "training/run/pause.py", "bool(self.signal) or 0 < ", "0 < ", _SIGTERM),
    Mutation(
        "a second signal kills",
        "training/run/pause.py",
        "signal.signal(other, signal.SIG_DFL)",
        "signal.getsignal(other)",
        f"{SIGNALS}::test_a_signal_among_steps_is_noted_and_the_next_one_has_its_default_effect",
    ),
    Mutation(
        "a signal just before an evaluation counts",
        "training/run/pause.py",
        "            if self.signal:\n                raise Interrupted(self.signal)\n",
        "",
        f"{SIGNALS}::test_where_all_is_saved_a_signal_ends_at_once_also_one_that_came_just_before",
    ),
    Mutation(
        "nohup stays",
        "common/signals.py",
        "if earlier[number] is not signal.SIG_IGN]",
        "if earlier[number] is not None]",
        f"{SIGNALS}::test_a_signal_that_is_ignored_stays_ignored",
    ),
    Mutation(
        "the exit code is the shells'",
        "common/signals.py",
        "sys.exit(128 + interruption.number)",
        "sys.exit(1)",
        f"{SIGNALS}::test_before_the_first_step_it_exits_as_shells_do_with_a_line",
    ),
    Mutation(
        "signals that come together are one",
        "training/run/pause.py",
        "            signal.signal(other, signal.SIG_IGN)",
        "            signal.signal(other, signal.SIG_DFL)",
        f"{SIGNALS}::test_signals_that_come_together_are_one",
    ),
    Mutation(
        "Ctrl-C among imports leaves no traceback",
        "cli/process.py",
        "signal.signal(signal.SIGINT, signal.SIG_DFL)",
        "pass",
        "tests/cli/test_process.py::test_ctrl_c_before_the_program_handles_it_leaves_no_traceback",
    ),
    # Disks, and two processes.
    Mutation(
        "a full disk is seen before a save",
        "training/run/atomic_save.py",
        "            _check_disk_space(final, trees)\n",
        "",
        f"{CHECKPOINT}::test_a_disk_without_room_is_told_before_anything_is_written",
    ),
    Mutation(
        "a save that fails leaves no half",
        "training/run/atomic_save.py",
        "        shutil.rmtree(temporary, ignore_errors=True)\n        if",
        "        if",
        f"{CHECKPOINT}::test_a_save_that_fails_in_the_middle_leaves_no_half",
    ),
    # Corpora in the cache.
    Mutation(
        "a kept array that is not as it was written is not used",
        "common/cache.py",
        "return bool(listed) and hash_files(entry / name for name in listed) == list(listed.values())",
        "return bool(listed) and all((entry / name).exists() for name in listed)",
        "tests/common/test_cache.py::test_damage_of_any_file_is_seen_and_mended",
    ),
    Mutation(
        "an entry is whole before it has its name",
        "common/cache.py",
        '    temporary = entry.with_name(f".{entry.name}")\n',
        "    temporary = entry\n",
        "tests/common/test_cache.py::test_an_entry_that_was_interrupted_is_not_used_and_its_remains_go",
    ),
    Mutation(
        "a corpus is known by every letter of its files",
        "data/kept_corpus.py",
        "        digests = hash_files(paths)\n",
        "        digests = [str(path.stat().st_size) for path in paths]\n",
        f"{KEPT}::test_a_changed_line_is_seen_though_size_and_time_are_those_of_before",
    ),
    Mutation(
        "a corpus is known by the code that read it",
        "data/kept_corpus.py",
        "json.dumps([code(), settings,",
        "json.dumps([settings,",
        f"{KEPT}::test_the_key_has_every_setting_of_the_text_the_code_and_its_libraries",
    ),
    Mutation(
        "what was written while it was read is not kept",
        "data/kept_corpus.py",
        "            raise FileChangedError\n",
        "            pass\n",
        f"{KEPT}::test_a_file_that_is_written_while_it_is_read_is_read_again_and_not_kept",
    ),
    Mutation(
        "tokens are kept by their vocabulary",
        "data/batches/windows.py",
        "    settings = [sha256(tokenizer.model), config.row_length,",
        "    settings = [config.row_length,",
        f"{KEPT}::test_another_vocabulary_or_row_gives_other_tokens_of_the_same_text",
    ),
    # Saves in the background.
    Mutation(
        "a save waits for the one before it",
        "training/run/background_save.py",
        "        self.wait()\n        commit =",
        "        commit =",
        f"{SAVES}::test_a_save_waits_for_the_one_before_it",
    ),
    Mutation(
        "what a save needs no longer goes when the save is complete",
        "training/run/background_save.py",
        "            commit()\n            delete_old_checkpoints(self._run_dir, self._keep, progress.best_step)",
        "            delete_old_checkpoints(self._run_dir, self._keep - 1, progress.best_step)\n            commit()",
        f"{SAVES}::test_earlier_checkpoints_go_when_the_save_is_complete_and_not_before",
    ),
    Mutation(
        "a save that fails in the background is told at the next step",
        "training/run/background_save.py",
        "            self._going_on.result()",
        "            pass",
        f"{SAVES}::test_a_save_that_fails_after_training_went_on_is_told_and_costs_no_earlier_one",
    ),
    Mutation(
        "the loop asks",
        "train.py",
        "            run.saves.check()\n",
        "",
        f"{TRAIN}::test_a_save_that_fails_while_training_goes_on_ends_it_and_the_same_command_continues",
    ),
    Mutation(
        "a save begins with the state of its step",
        "training/run/background_save.py",
        "        commit = begin_save(self._run_dir, state, progress.to_notes())\n\n        def write() -> None:\n",
        "        def write() -> None:\n            commit = begin_save(self._run_dir, state, progress.to_notes())\n",
        f"{SAVES}::test_training_goes_on_and_reaches_neither_the_checkpoint_nor_its_notes",
    ),
    Mutation(
        "an error of the training leaves its save complete",
        "training/run/background_save.py",
        "                saves.wait()\n        raise",
        "                pass\n        raise",
        f"{SAVES}::test_an_error_of_the_training_leaves_the_save_that_goes_on_complete",
    ),
    Mutation(
        "an evaluation waits for its checkpoint",
        "train.py",
        "        run.saves.wait()\n        with pause",
        "        with pause",
        f"{TRAIN}::test_a_signal_in_an_evaluation_loses_nothing",
    ),
    Mutation(
        "between lines of metrics nothing waits for the last step",
        "training/progress.py",
        "LAG = 2  # steps",
        "LAG = 0  # steps",
        "tests/training/devices/test_hot_loop.py"
        "::test_between_lines_of_metrics_only_readings_of_two_steps_before_are_fetched",
    ),
    Mutation(
        "a save never lands below a lost mount",
        "training/run/atomic_save.py",
        "if not os.path.samestat(run_dir.stat(), folder):",
        "if False:",
        f"{CHECKPOINT}::test_a_run_that_is_moved_while_a_checkpoint_is_written_gets_none_in_its_old_place",
    ),
    Mutation(
        "what an interrupted save left goes",
        "training/run/checkpoint.py",
        'for leftover in final.parent.glob(".*"):',
        "for leftover in ():",
        f"{CHECKPOINT}::test_leftovers_of_an_interrupted_save_are_not_believed_and_go",
    ),
    Mutation(
        "files are written beside and renamed",
        "common/files.py",
        'temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")',
        "temporary = path",
        f"{FILES}::test_the_old_content_stays_until_the_new_is_on_the_disk",
    ),
    Mutation(
        "a refused write leaves no half",
        "common/files.py",
        "            temporary.unlink(missing_ok=True)\n\n\ndef append",
        "            pass\n\n\ndef append",
        f"{FILES}::test_a_write_that_the_system_refuses_changes_nothing_and_is_told",
    ),
    Mutation(
        "leftovers of the killed go, of the living stay",
        "common/files.py",
        "and not _is_running(int(process))",
        "and True",
        f"{FILES}::test_what_a_killed_writer_left_goes_and_that_of_a_living_one_stays",
    ),
    Mutation(
        "a fault of the disk is no traceback",
        "common/errors.py",
        "if error.errno not in ADVICE_BY_CODE:",
        "if True:",
        f"{FILES}::test_a_fault_of_the_disk_is_one_line_and_exit_code_2",
    ),
    Mutation(
        "a second process is refused",
        "training/run/lock.py",
        "            lock.acquire()\n",
        "            pass\n",
        f"{LOCK}::test_a_second_process_is_refused_and_told_which_holds_the_run_and_a_dead_one_holds_nothing",
    ),
    Mutation(
        "a run that is gone is told",
        "training/run/lock.py",
        "            check_not_lost(run_dir)  #",
        "            pass  #",
        f"{LOCK}::test_a_run_whose_folder_is_moved_away_is_told_so_whatever_failed_for_it",
    ),
    Mutation(
        "a mistake leaves no empty run",
        "training/run/lock.py",
        "            _remove_if_unused(run_dir)\n        lock",
        "            pass\n        lock",
        f"{LOCK}::test_a_new_directory_in_which_nothing_was_written_goes_again",
    ),
    Mutation(
        "a lost terminal ends nothing",
        "training/run/log.py",
        "    except (OSError, ValueError) as error:",
        "    except KeyError as error:",
        f"{MONITOR}::test_a_terminal_that_is_gone_ends_nothing",
    ),
    # Filters.
    Mutation(
        "a full standard error costs no result",
        "common/errors.py",
        "        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)",
        "        raise",
        "tests/common/test_errors.py::test_results_and_the_exit_code_do_not_depend_on_standard_error",
    ),
    Mutation(
        "lines before a bad one are translated",
        "scripts/translate.py",
        "translate_block(checked[: checked.index(bad[0])], run, arguments, bar)",
        "pass",
        f"{TRANSLATE}::test_lines_before_a_bad_one_are_translated_and_it_is_named",
    ),
    Mutation(
        "a bad line costs no other",
        "scripts/translate.py",
        'if bad and arguments.on_error == "stop":',
        "if bad:",
        f"{TRANSLATE}::test_a_bad_line_is_blank_and_costs_no_other",
    ),
    Mutation(
        "bad lines are told by the exit code",
        "scripts/translate.py",
        "    if failed:\n",
        "    if False:\n",
        f"{TRANSLATE}::test_as_json_a_bad_line_has_its_number_and_error",
    ),
    Mutation(
        "a prefix without room costs its line alone",
        "evaluation/translate.py",
        'describe_lack_of_room(tokens, limit) if piece else ""',
        'describe_lack_of_room(tokens, limit) if len(piece) > 10**9 else ""',
        f"{TRANSLATE}::test_a_prefix_too_long_for_one_line_costs_that_line_alone",
    ),
    Mutation(
        "a redirected run has its lines in the file",
        "training/run/log.py",
        "decode(encoding), flush=True)",
        "decode(encoding), flush=True, file=sys.stderr)",
        f"{LINES}::test_a_redirected_run_has_its_lines_in_the_file_and_nothing_on_standard_error",
    ),
    Mutation(
        "a full standard output ends nothing when Python ends",
        "training/run/log.py",
        "        discard_output()\n        warn",
        "        warn",
        f"{LINES}::test_an_output_that_takes_nothing_costs_the_run_nothing",
    ),
    Mutation(
        "a reader that goes ends nothing",
        "training/run/log.py",
        "has all it wants\n        discard_output()",
        "has all it wants\n        raise",
        f"{LINES}::test_a_reader_that_goes_costs_the_run_nothing",
    ),
    Mutation(
        "no file takes the number of a closed stream",
        "cli/process.py",
        "    open_closed_streams()\n    if",
        "    if",
        f"{LINES}::test_an_output_that_takes_nothing_costs_the_run_nothing",
    ),
    Mutation(
        "the time of a line makes no two runs differ",
        "training/run/metrics.py",
        'MEASURED = ("time", ',
        "MEASURED = (",
        f"{MONITOR}::test_the_time_differs_when_a_run_is_repeated_and_older_lines_have_none",
    ),
    Mutation(
        "damaged metrics are kept aside and told",
        "training/run/metrics.py",
        "    if rejected:\n        write_atomically",
        "    if False:\n        write_atomically",
        f"{MONITOR}::test_lines_that_are_no_metrics_are_kept_aside_and_told",
    ),
    # Updates that are not finite.
    Mutation(
        "a non-finite update is not taken",
        "training/step.py",
        "jax.tree.map(lambda a, b: jnp.where(is_finite, a, b), new, old)",
        "new",
        _NOT_FINITE,
    ),
    Mutation(
        "a non-finite gradient of a finite loss is seen",
        "training/step.py",
        "jnp.isfinite(sums.objective) & jnp.isfinite(norm) &",
        "jnp.isfinite(sums.objective) &",
        f"{STATE}::test_a_gradient_too_large_for_its_norm_is_not_taken_either",
    ),
    Mutation(
        "a non-finite update of a finite gradient is seen",
        "training/step.py",
        " & jnp.isfinite(optax.tree.norm(updates))",
        "",
        f"{STATE}::test_a_step_too_large_for_its_parameters_is_not_taken_either",
    ),
    Mutation(
        "a good update ends the row",
        "training/step.py",
        "jnp.where(is_finite, 0, skipped.in_row + 1)",
        "skipped.in_row + new",
        _NOT_FINITE,
    ),
    Mutation(
        "the row has its limit",
        "training/progress.py",
        "if in_row >= self.limit:",
        "if in_row > self.limit:",
        f"{STATE}::test_too_many_in_a_row_stop_the_run_and_name_step_and_batch",
    ),
    Mutation(
        "the run stops there",
        "train.py",
        "            divergence.add(step, reading)\n",
        "",
        f"{TRAIN}::test_updates_that_are_not_finite_are_counted_and_too_many_stop_the_run",
    ),
    # Changed configs and corpora.
    Mutation(
        "what changes the training must be asked for",
        "configs/changes.py",
        'if any(kind != "harmless" for kind in kinds.values()) and not new.allow_changes:',
        "if False:",
        f"{CHANGES}::test_what_may_go_on_is_told_and_what_may_not_is_refused",
    ),
    Mutation(
        "incompatible is never allowed",
        "configs/changes.py",
        'if "incompatible" in kinds.values():',
        'if "incompatible" in kinds.values() and not new.allow_changes:',
        f"{CHANGES}::test_what_may_go_on_is_told_and_what_may_not_is_refused",
    ),
    Mutation(
        "more steps of a cosine are no mere limit",
        "configs/changes.py",
        'if key == "training.steps" and',
        'if key == "training.stops" and',
        f"{CHANGES}::test_where_the_learning_rate_ends_with_the_steps_they_are_no_mere_limit",
    ),
    Mutation(
        "another validation set must be asked for",
        "data/prepare.py",
        'compare("data.valid", old.files["valid"], new.files["valid"])',
        "[]",
        _CHANGED,
    ),
    Mutation(
        "what the run was before is kept",
        "experiment/open_run.py",
        "            archive_config(run_dir, newest)\n",
        "            pass\n",
        _CHANGED,
    ),
    Mutation(
        "scores that do not compare choose no checkpoint",
        "experiment/open_run.py",
        "        if is_judged_anew(config, run_dir, newest, prepared):\n",
        "        if False:\n",
        f"{OPENING}::test_scores_that_do_not_compare_choose_the_best_checkpoint_anew",
    ),
    Mutation(
        "a lost record is not taken for the same data",
        "data/prepare.py",
        '        if not allow_changes:\n            raise UserError(f"{lost};',
        '        if False:\n            raise UserError(f"{lost};',
        f"{TRAIN}::test_a_run_directory_with_a_file_lost_or_edited_is_refused_with_its_name",
    ),
    Mutation(
        "a damaged tokenizer is not replaced in silence",
        "data/tokens/tokenizer.py",
        "            if needed:\n                raise\n",
        "            if False:\n                raise\n",
        f"{TRAIN}::test_a_run_directory_with_a_file_lost_or_edited_is_refused_with_its_name",
    ),
    Mutation(
        "a continuation is checked against its checkpoint before it writes",
        "experiment/open_run.py",
        "    check_restorable(run_dir, newest, like)\n",
        "",
        f"{OPENING}::test_a_continuation_that_is_refused_leaves_every_file_as_it_was",
    ),
    Mutation(
        "a continuation is checked against its positions before it writes",
        "experiment/open_run.py",
        "    validation = prepare_validation(config, prepared, devices)\n    if compiled:\n",
        "    record_run(config, run_dir, newest, prepared, changes)\n"
        "    validation = prepare_validation(config, prepared, devices)\n    if compiled:\n",
        f"{OPENING}::test_a_continuation_that_is_refused_leaves_every_file_as_it_was",
    ),
    Mutation(
        "what is refused leaves no row counts",
        "data/prepare.py",
        "    stream.hold_row_counts(True)  #",
        "    stream.hold_row_counts(False)  #",
        f"{OPENING}::test_a_new_run_that_is_refused_leaves_nothing",
    ),
    Mutation(
        "a new sum begins at zero",
        "training/run/checkpoint.py",
        "saved.get(name, zero) for name",
        "saved[name] for name",
        f"{CHECKPOINT}::test_a_sum_that_an_older_checkpoint_lacks_begins_at_zero_and_one_that_is_no_longer_kept_is_left_out",
    ),
    Mutation(
        "a run that was moved does not begin anew in its old place",
        "experiment/load_experiment.py",
        "    if not is_of_a_run or is_same",
        "    if True or is_same",
        f"{OPENING}::test_the_config_of_a_run_that_was_moved_or_copied_is_refused_with_the_command_that_goes_on",
    ),
    Mutation(
        "the run of a base is not inherited",
        "configs/load.py",
        "for key, value in inherited if key not in OF_ONE_RUN",
        "for key, value in inherited",
        "tests/configs/test_extends.py::test_the_run_of_a_base_is_not_inherited",
    ),
    Mutation(
        "a change that no checkpoint has can be undone",
        "training/run/config_history.py",
        "if newest is None or newest not in change_steps(run_dir):",
        "if True:",
        "tests/experiment/test_open_run.py::test_a_change_that_no_checkpoint_has_can_be_undone",
    ),
    # Choices of the config.
    Mutation(
        "positions without code are no silent default",
        "model/transformer.py",
        'raise NotImplementedError(f"model.positions={self.config.positions}")',
        "return Order()",
        f"{CHOICES}::test_every_match_ends_with_a_case_that_raises",
    ),
    Mutation(
        "no comparison hides a choice",
        "model/transformer.py",
        "if config.final_norm else []",
        'if config.norm == "pre" else []',
        f"{CHOICES}::test_no_comparison_with_a_choice_leaves_the_others_a_default",
    ),
    Mutation(
        "a zero query is a query",
        "attention/scores.py",
        "return dot_product(query, key) / math.sqrt(query.shape[-1])",
        "return dot_product(query, key) / jnp.linalg.norm(query, axis=-1, keepdims=True)",
        "tests/attention/test_scores.py::test_hostile_queries_and_keys_give_the_oracles_weights_and_finite_gradients",
    ),
    Mutation(
        "each score has its own array",
        "model/layers.py",
        'axes="N" + self.learned)',
        'axes="N" + self.learned) if "HH" in self.learned else nnx.Param(jnp.zeros(shape), axes="NH")',
        "tests/model/test_layers.py::test_scores_start_with_the_variance_that_their_softmax_can_use",
    ),
    Mutation(
        "the search is the one that was asked for",
        "evaluation/translate.py",
        "count, ranking, config.search, sampling)",
        'count, ranking, "beam", sampling)',
        "tests/evaluation/test_translate.py::test_two_seeds_draw_different_translations",
    ),
    Mutation(
        "each activation is its formula",
        "model/activations.py",
        '"silu": jax.nn.silu',
        '"silu": jax.nn.gelu',
        "tests/model/test_layers.py::test_activation_is_its_formula",
    ),
    Mutation(
        "a key that no code reads is told",
        "training/optimizer.py",
        "/ (config.decay_steps + 1)",
        "/ (20 + 1)",
        f"{CHOICES}::test_the_code_reads_every_key",
    ),
    # Techniques for small corpora.
    Mutation(
        "the divergence moves both views",
        "model/consistency.py",
        "jax.nn.log_softmax(second[0])",
        "jax.lax.stop_gradient(jax.nn.log_softmax(second[0]))",
        "tests/model/test_consistency.py::test_the_divergence_moves_both_views",
    ),
    Mutation(
        "padding has no divergence",
        "model/consistency.py",
        "jnp.where(first[2], divergence, 0)",
        "divergence",
        "tests/model/test_consistency.py::test_padding_has_no_loss_and_no_gradient",
    ),
    Mutation(
        "views differ by more than their cuts",
        "training/objective.py",
        "is_second = jnp.arange(len(ids))[:, None] % 2 == 1",
        "is_second = jnp.ones((len(ids), 1), bool)",
        "tests/training/test_objective.py::test_views_of_a_row_stand_side_by_side_and_differ",
    ),
    Mutation(
        "special tokens are never hidden",
        "model/embedding.py",
        " & (ids > TAGS[-1])",
        "",
        "tests/model/test_regularisation.py::test_words_are_hidden_at_the_rate_and_special_tokens_never",
    ),
    Mutation(
        "a sentence skips a block as a whole",
        "model/layers.py",
        "jnp.take_along_axis(skips, segments, axis=1)[..., None]",
        "skips[:, 1:, None]",
        "tests/model/test_regularisation.py::test_a_sentence_skips_a_block_as_a_whole_and_for_itself",
    ),
    Mutation(
        "text that spells a tag is no tag",
        "data/tokens/tokenizer.py",
        "control_symbols=list",
        "user_defined_symbols=list",
        "tests/data/batches/test_directions.py::test_tags_are_special_symbols_that_no_text_spells",
    ),
    Mutation(
        "the reverse direction has a tag of its own",
        "data/batches/windows.py",
        "tags = [tokenizer.tag(direction.target) for direction in",
        "tags = [tokenizer.tag(config.target) for _ in",
        "tests/data/batches/test_directions.py::test_every_pair_comes_in_both_directions_each_with_its_tag",
    ),
    Mutation(
        "each direction has a report of its own",
        "eval.py",
        "if conditions.direction != own.direction:",
        "if False:",
        "tests/scripts/test_directions.py::test_each_direction_has_its_report",
    ),
    # Hostile input, and security.
    Mutation(
        "a lack of memory is no traceback",
        "common/errors.py",
        "        if not is_out_of_memory(error):",
        "        if True:",
        f"{FILES}::test_a_lack_of_memory_is_one_line_with_the_advice_of_its_place",
    ),
    Mutation(
        "a lack of memory has the advice of its place",
        "common/errors.py",
        "    except UserError:\n        raise\n",
        "",
        f"{FILES}::test_a_lack_of_memory_is_one_line_with_the_advice_of_its_place",
    ),
    Mutation(
        "decoding without memory does not blame training",
        "evaluation/translate.py",
        'f"make decoding.batch_sentences or',
        'f"make data.batch_rows or',
        "tests/scripts/test_memory.py::test_decoding_advises_to_decode_less_at_once",
    ),
    Mutation(
        "a compilation says what changed",
        "training/devices/compilation.py",
        "changes = list_changes(compiled_for, arguments()) or [",
        "changes = [",
        f"{COMPILATION}::test_compilations_are_reported_with_what_changed_and_calls_and_other_functions_are_not",
    ),
    Mutation(
        "a change of sharding is told",
        "training/devices/compilation.py",
        "for describe in (_type, _sharding):",
        "for describe in (_type,):",
        f"{COMPILATION}::test_a_change_is_told_by_the_path_of_its_array_with_shape_dtype_and_sharding",
    ),
    Mutation(
        "an error quotes the override that is wrong",
        "configs/load.py",
        "    blamed = [key for key in last if key in named]\n",
        "    blamed = list(last)\n",
        f"{LOADING}::test_of_many_overrides_those_that_a_rule_names_are_quoted",
    ),
    Mutation(
        "no unrelated key is suggested",
        "configs/keys.py",
        "NEAR = 0.7",
        "NEAR = 0.1",
        f"{KEY_NAMES}::test_an_unrelated_name_is_near_to_nothing",
    ),
    Mutation(
        "the shipped configs are listed wherever the program starts",
        "configs/load.py",
        " else SHIPPED\n",
        ' else Path("configs")\n',
        f"{LOADING}::test_a_config_file_that_is_not_there_stops_with_those_that_are",
    ),
    Mutation(
        "help lists what the program accepts",
        "configs/keys.py",
        ' if f"{key.name}:".startswith(accepted)]',
        "]",
        f"{KEY_NAMES}::test_help_lists_only_the_keys_that_a_program_accepts",
    ),
    Mutation(
        "a config file that is forgotten is asked for",
        "cli/command_line.py",
        'if value is None or value.partition("=")[0] in KEYS:',
        "if value is None:",
        f"{KEY_NAMES}::test_a_wrong_command_line_is_told_in_one_line_and_exits_with_2",
    ),
    Mutation("YAML has a depth", "configs/load.py", "if level > MAX_LEVELS:", "if level > 10**9:", _MONSTER),
    Mutation("YAML has a size", "configs/load.py", "if len(text) > MAX_BYTES:", "if False:", _MONSTER),
    Mutation("no control character gets into a config", "configs/load.py", 'in ("Cc", "Cs")', 'in ("Cs",)', _MONSTER),
    Mutation(
        "an error stays one short line", "configs/load.py", "unknown key {in_brief(key)}", "unknown key {key}", _MONSTER
    ),
    Mutation(
        "a config that was cut short is no whole one",
        "configs/load.py",
        "    if LAST_KEY not in dict(_read_file(path)):",
        "    if False:",
        f"{CONFIGS}::test_a_saved_config_that_was_cut_short_is_never_taken_for_a_whole_one",
    ),
    Mutation(
        "an object that means two things is malformed",
        "data/sources/jsonl.py",
        "    if len(row) < len(items):",
        "    if False:",
        f"{CORPORA}::test_an_object_that_means_two_things_is_named_or_skipped",
    ),
    Mutation(
        "a pipe or device is not read",
        "data/sources/corpus.py",
        "if not os.path.isfile(path):",
        "if not path.is_file():",
        f"{CORPORA}::test_what_is_no_file_is_refused_without_being_read",
    ),
    Mutation(
        "marks keep their order",
        "data/pairs.py",
        "key=unicodedata.combining)",
        "key=ord)",
        f"{CORPORA}::test_marks_in_order_are_the_same_text",
    ),
    Mutation("no pickle", "data/corpus/splits.py", "allow_pickle=False", "allow_pickle=True", _HASHES),
    Mutation(
        "damaged hashes are named",
        "data/corpus/splits.py",
        "except Exception as error:  # of",
        "except ValueError as error:  # of",
        _HASHES,
    ),
    Mutation(
        "a message shows no control character",
        "data/corpus/splits.py",
        "{in_brief(example)}",
        "{example}",
        f"{CORPORA}::test_a_sentence_that_two_splits_share_is_told_in_brief",
    ),
    Mutation(
        "what is no vocabulary is named",
        "data/tokens/tokenizer.py",
        "    except RuntimeError as error:\n        raise ValueError(",
        "    except KeyError as error:\n        raise ValueError(",
        f"{CORPORA}::test_a_file_that_is_no_vocabulary_is_named_even_if_its_hash_is_right",
    ),
    Mutation(
        "a vocabulary with other special symbols is not taken",
        "data/tokens/tokenizer.py",
        "    if special != (PAD, UNK, BOS, EOS):",
        "    if False:",
        f"{CORPORA}::test_a_vocabulary_with_other_special_symbols_is_not_taken",
    ),
    Mutation(
        "row counts are believed by their checksum",
        "data/batches/windows.py",
        'if path is None or saved["check"] == self.checksum(saved["rows"]):',
        "if True:",
        f"{CORPORA}::test_row_counts_are_believed_by_their_checksum_alone",
    ),
    Mutation(
        "one monster does not shape the rows",
        "data/batches/windows.py",
        "<= MAX_ROWS * config.row_length)",
        "<= 10**9 * config.row_length)",
        _MILLION,
    ),
    Mutation(
        "rows add up",
        "data/sources/text.py",
        "    return SourceReport(str(path), sha256_of_file(path), rows, skipped)",
        "    return SourceReport(str(path), sha256_of_file(path), rows - skipped, skipped)",
        f"{CORPORA}::test_every_row_is_a_pair_or_in_one_count",
    ),
    Mutation(
        "a blank line is no mistake, but counted",
        "data/sources/text.py",
        "            if is_blank(text):",
        "            if False:",
        f"{_TABLE}::test_blank_lines_are_left_out_and_counted_in_every_form",
    ),
    Mutation(
        "no more than a share of a file is dropped",
        "data/sources/text.py",
        "skipped > config.max_malformed * rows",
        "skipped > rows",
        f"{_TABLE}::test_no_more_than_a_share_of_a_files_lines_is_dropped",
    ),
    Mutation(
        "a header is no pair",
        "data/sources/table.py",
        "    if named is None:",
        "    if True:",
        f"{_TABLE}::test_a_header_is_no_pair_unless_someone_says_so",
    ),
    Mutation(
        "a header may not contradict the columns",
        "data/sources/table.py",
        'case "skip" if other:',
        'case "skip" if False:',
        f"{_TABLE}::test_a_header_tells_when_the_columns_are_others",
    ),
    Mutation(
        "quoting is no text",
        "data/sources/table.py",
        'if config.quoting == "stop" and',
        "if False and",
        f"{_TABLE}::test_quoting_is_no_text_unless_someone_says_so",
    ),
    Mutation(
        "ids are no language",
        "data/sources/table.py",
        "    if width > len(config.columns):",
        "    if False:",
        f"{_TABLE}::test_a_column_of_ids_is_not_taken_for_a_language",
    ),
    Mutation(
        "columns of language codes are no header",
        "data/sources/recognise.py",
        "return None if codes else named",
        "return named",
        f"{_TABLE}::test_columns_of_language_codes_are_no_header",
    ),
    Mutation(
        "a column of few short values is no language",
        "data/sources/recognise.py",
        "(constant or repeats_few(values))",
        "constant",
        f"{_TABLE}::test_a_column_of_few_short_values_is_no_language",
    ),
    Mutation(
        "a header may follow blank lines",
        "data/sources/table.py",
        "start = lines[0].number + 1 if",
        "start = 2 if",
        f"{_TABLE}::test_a_header_may_follow_blank_lines",
    ),
    Mutation(
        "a header in other words is told",
        "data/corpus/warnings.py",
        "    if is_table(report.file) and",
        "    if False and",
        f"{_DOUBTS}::test_a_first_line_that_may_be_a_header_is_told_if_headers_are_to_be_skipped",
    ),
    Mutation(
        "lines that are not parallel are told",
        "data/corpus/warnings.py",
        "correlation < LEAST_CORRELATION:",
        "correlation < -1:",
        f"{_DOUBTS}::test_lines_that_are_not_parallel_are_told",
    ),
    Mutation(
        "single words are not suspected",
        "data/corpus/warnings.py",
        " < LEAST_SPREAD).any()",
        " < 0).any()",
        f"{_DOUBTS}::test_nothing_is_said_of_clean_corpora",
    ),
    Mutation(
        "rows dropped in number are told",
        "data/corpus/warnings.py",
        "report.mismatched > MANY_MISMATCHED * report.rows",
        "report.mismatched > report.rows",
        f"{_DOUBTS}::test_rows_that_are_dropped_in_number_are_told",
    ),
    Mutation(
        "letters of another encoding are told",
        "data/corpus/warnings.py",
        "    if misread := find_misread(pairs):",
        "    if misread := []:",
        f"{_DOUBTS}::test_letters_of_another_encoding_are_told_and_counted",
    ),
    Mutation(
        "older encodings are not taken for cp1252",
        "data/sources/encodings.py",
        "    if 5 * len(foreign) > ",
        "    if len(foreign) > ",
        f"{_ENCODINGS}::test_older_western_encodings_are_not_taken_for_cp1252",
    ),
    Mutation(
        "a fault of the whole file is not to be skipped",
        "data/sources/text.py",
        "alone = number > first or any(",
        "alone = True or any(",
        "tests/data/sources/test_text.py::test_a_fault_of_the_whole_file_is_not_to_be_skipped",
    ),
    Mutation(
        "a byte order mark is no text",
        "data/sources/lines.py",
        ".removeprefix(codecs.BOM_UTF8)",
        "",
        "tests/data/sources/test_text.py::"
        "test_a_byte_order_mark_is_no_text_and_gzip_without_its_name_and_an_empty_file_are_named",
    ),
    Mutation(
        "another encoding is told",
        "data/sources/encodings.py",
        "    if 2 * len(others) <= len(lines):",
        "    if True:",
        f"{_ENCODINGS}::test_another_encoding_is_told_with_both_ways_out_and_never_halved",
    ),
    Mutation(
        "UTF-8 is not read as other letters",
        "data/sources/encodings.py",
        "    if shows and",
        "    if False and",
        f"{_ENCODINGS}::test_a_file_in_utf8_is_not_read_as_other_letters",
    ),
    Mutation(
        "a set that the run wrote has the form that it wrote",
        "data/sources/corpus.py",
        "load_source(as_written(config), ",
        "load_source(config, ",
        "tests/data/corpus/test_build.py::test_a_set_taken_out_of_another_form_of_corpus_is_read_as_the_run_wrote_it",
    ),
    Mutation(
        "every pair once an epoch",
        "data/batches/windows.py",
        "[window * self.config.window : (window + 1) * self.config.window]",
        "[window * self.config.window : (window + 1) * self.config.window - 1]",
        "tests/data/batches/test_epochs.py::test_every_kept_pair_comes_once_an_epoch",
    ),
    Mutation(
        "no text breaks a table of the data card",
        "common/text_table.py",
        'MARKDOWN.sub(r"\\\\\\1", visible(text))',
        'MARKDOWN.sub(r"\\\\\\1", text)',
        f"{TABLES}::test_no_text_of_a_corpus_breaks_a_table_or_becomes_anything_but_text",
    ),
    Mutation(
        "an average's name is no path",
        "training/run/averaging.py",
        "if not re.fullmatch(AVERAGE_NAME, name):",
        "if not re.match(AVERAGE_NAME, name):",
        "tests/test_output_paths.py::test_an_average_is_called_by_a_plain_name_or_not_at_all",
    ),
    # Replay.
    Mutation(
        "a replay is of the run's own corpus",
        "experiment/recorded_run.py",
        "    if recorded != current:",
        "    if False:",
        f"{_REPLAY}::test_a_run_whose_batches_are_not_known_is_refused",
    ),
    Mutation(
        "a replay takes the run's own batches",
        "training/replay/replay.py",
        "setup.stream.batch(self.step)\n        self.state, reading",
        "setup.stream.batch(self.step + 1)\n        self.state, reading",
        f"{_REPLAY}::test_a_replay_comes_to_the_state_that_was_saved",
    ),
    Mutation(
        "the pairs' losses have the update's dropout",
        "training/replay/inspect_step.py",
        "jax.random.key(setup.training.seed), state.step)",
        "jax.random.key(setup.training.seed), state.step + 1)",
        f"{_REPLAY}::test_the_losses_of_the_pairs_are_the_loss_that_the_run_recorded",
    ),
    Mutation(
        "infinite gradients are counted",
        "training/replay/inspect_step.py",
        "(~np.isfinite(leaf)).sum()",
        "np.isnan(leaf).sum()",
        f"{_REPLAY}::test_norms_by_hand",
    ),
    Mutation(
        "one bit is a difference",
        "training/replay/comparison.py",
        "jnp.array_equal(bits(leaf), bits(twin))",
        "jnp.allclose(leaf, twin)",
        f"{_REPLAY}::test_a_checkpoint_that_is_one_bit_off_is_told",
    ),
    Mutation(
        "another batch is the first difference",
        "training/replay/comparison.py",
        "    if one.batch != other.batch:",
        "    if False:",
        f"{_REPLAY}::test_what_differs_first",
    ),
    Mutation(
        "saves by the clock",
        "train.py",
        " or pause.save_is_due(step):",
        ":",
        f"{TRAIN}::test_saves_by_the_clock_change_nothing",
    ),
    Mutation(
        "rows of several devices come back in their order",
        "evaluation/over_devices.py",
        "    return found.reshape(mesh.size, -1, *found.shape[1:]).swapaxes(0, 1).reshape(found.shape)",
        "    return found",
        "tests/scripts/test_eight_devices.py::test_every_device_translates",
    ),
    Mutation(
        "searches side by side keep their order",
        "evaluation/side_by_side.py",
        "        yield from pool.map(function, tasks)",
        "        yield from reversed(list(pool.map(function, tasks)))",
        "tests/evaluation/test_side_by_side.py::test_results_are_in_the_order_of_the_tasks",
    ),
    Mutation(
        "two runs that differ are no success",
        "scripts/replay.py",
        "sys.exit(int(comparison.differ))",
        "sys.exit(0)",
        f"{_REPLAY}::test_what_differs_first",
    ),
]


def main() -> None:
    """Try all, or those with one of the words; exit 1 if a mutation goes unseen."""
    chosen = [each for each in MUTATIONS if not sys.argv[1:] or any(word in " ".join(each) for word in sys.argv[1:])]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        copy_tree(tree)
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(Path(folder) / "cache")}
        tests = list(dict.fromkeys(each.test for each in chosen))
        unseen = [f"fails without any mutation: {test}" for test in tests if not passes(tree, test, environment)]
        for each in chosen:
            seen = is_seen(tree, each, environment)
            print(f"{'seen  ' if seen else 'UNSEEN'}  {each.promise:<58} {each.file:<26} {each.test}", flush=True)
            unseen += [] if seen else [each.promise]
    print(f"\n{len(chosen)} mutations, {len(unseen)} unseen" + "".join(f"\n  {name}" for name in unseen))
    sys.exit(bool(unseen))


def copy_tree(tree: Path) -> None:
    """The files of the working tree that git knows or would add."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)


def is_seen(tree: Path, mutation: Mutation, environment: dict[str, str]) -> bool:
    """Whether the test fails with the mutation, which is taken back."""
    file = tree / mutation.file
    whole = file.read_text(encoding="utf-8")
    assert whole.count(mutation.old) == 1, mutation
    file.write_text(whole.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return not passes(tree, mutation.test, environment)
    finally:
        file.write_text(whole, encoding="utf-8")


def passes(tree: Path, test: str, environment: dict[str, str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "slow or not slow", "-p", "no:cacheprovider", test]
    environment = environment | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    status = subprocess.run(command, cwd=tree, capture_output=True, env=environment, check=False).returncode
    assert status in (0, 1, 2), f"{test}: pytest ended with {status}"  # 2: by a signal; 4 or 5: there is no such test
    return status == 0


if __name__ == "__main__":
    main()
