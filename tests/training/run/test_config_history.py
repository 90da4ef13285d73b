"""Each step has the config it was made with, through changes and a return to an older checkpoint."""

from training.run.config_history import archive_config, change_steps, find_record, rewind_history


def change(run_dir, step, new):
    archive_config(run_dir, step)
    for name in ("config.yaml", "data.json"):
        (run_dir / name).write_text(new)


def read_configs(run_dir, steps):
    return "".join(find_record(run_dir, "config.yaml", step).read_text() for step in steps)


def test_each_step_has_the_record_it_was_made_with(tmp_path):
    assert change_steps(tmp_path) == []
    change(tmp_path, 0, "A")  # nothing was there to keep
    change(tmp_path, 2, "B")
    change(tmp_path, 2, "C")  # no step was taken with B
    change(tmp_path, 4, "D")
    assert change_steps(tmp_path) == [2, 4]
    assert read_configs(tmp_path, range(1, 7)) == "AACCDD"
    assert find_record(tmp_path, "data.json", 4).read_text() == "C"


def test_steps_that_are_taken_again_have_the_record_of_the_second_time(tmp_path):
    for step, new in ((0, "A"), (2, "B"), (4, "C"), (6, "D")):
        change(tmp_path, step, new)
    rewind_history(tmp_path, 6)
    assert read_configs(tmp_path, range(1, 9)) == "AABBCCDD"
    rewind_history(tmp_path, 3)  # the checkpoints at 4 and 6 are damaged
    assert change_steps(tmp_path) == [2, 3]
    assert read_configs(tmp_path, range(1, 9)) == "AABDDDDD"
    assert sorted(path.name for path in tmp_path.glob("data.until*")) == ["data.until-2.json", "data.until-3.json"]
    rewind_history(tmp_path, 2)
    assert read_configs(tmp_path, range(1, 5)) == "AADD"
