"""Every key explains itself, and --help shows it."""

import os
import re
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import parse_command_line
from common.errors import UserError
from configs.keys import KEYS, Key, describe_keys, find_nearest_key, format_value
from configs.load import load_config


def test_help_lists_every_key_with_default_and_type_within_100_columns():
    lines = describe_keys().splitlines()
    assert max(map(len, lines)) <= 100
    for key in KEYS.values():
        assert any(line.startswith(f"  {key.name}={format_value(key.default)}  (") for line in lines), key.name
    unwrapped = " ".join(describe_keys().split())
    assert all(" ".join(key.metadata["help"].split()) in unwrapped for key in KEYS.values())


NEAR = {"lr": "training.learning_rate", "warmup": "training.warmup_steps", "beam": "decoding.beam_size"}
NEAR |= {"training.beam_size": "decoding.beam_size", "model.vocab_size": "tokenizer.vocab_size"}
NEAR |= {"model.layers": "model.encoder_layers", "topk": "decoding.top_k", "trainning": "training"}


@pytest.mark.parametrize(("name", "meant"), NEAR.items())
def test_a_near_name_is_found_without_its_section_or_in_another(name, meant):
    assert find_nearest_key(name) == meant


@pytest.mark.parametrize("section", ["", "training.", "nosuch."])
@pytest.mark.parametrize("name", ["nosuch", "x", "", "...", "gpu"])
def test_an_unrelated_name_is_near_to_nothing(section, name):
    assert find_nearest_key(section + name) is None


@pytest.fixture
def called_with(monkeypatch):
    return lambda *arguments: monkeypatch.setattr("sys.argv", ["train.py", *arguments])


def add_options(parser):
    parser.add_argument("--output", metavar="FOLDER", help="where to write")
    parser.add_argument("--svg", action="store_true", help="as SVG")


@pytest.mark.parametrize("line", ["runs/x Hi --output a x=1 --svg y=2", "--svg --output a runs/x Hi x=1 y=2"])
def test_a_programs_own_options_stand_anywhere(called_with, line):
    called_with(*line.split())
    parsed = parse_command_line("Draw.", {"RUN": "a run", "SENTENCE": "a sentence"}, add_options)
    assert (parsed.RUN, parsed.SENTENCE, parsed.overrides) == ("runs/x", "Hi", ["x=1", "y=2"])
    assert (parsed.output, parsed.svg) == ("a", True)


def test_options_may_be_left_out_and_help_explains_them_and_the_keys(called_with, capsys):
    called_with("runs/x", "training.steps = 3")
    parsed = parse_command_line("Draw.", {"RUN": "a run"}, add_options)
    assert (parsed.RUN, parsed.output, parsed.svg, parsed.overrides) == ("runs/x", None, False, ["training.steps = 3"])
    called_with("--help")
    with pytest.raises(SystemExit) as stopped:
        parse_command_line("Draw.", {"RUN": "a run"}, add_options)
    told = capsys.readouterr().out
    assert stopped.value.code == 0
    assert "--output FOLDER" in told and "where to write" in told and describe_keys() in told


MISSING = "CONFIG is missing: a config file, such as configs/x.yaml"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], MISSING),
        (["training.steps=3"], MISSING),
        (["configs/x.yaml", "--dry-run"], "unrecognized arguments: --dry-run"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line_and_exits_with_2(called_with, capsys, arguments, problem):
    called_with(*arguments)
    with pytest.raises(SystemExit) as stopped:
        parse_command_line("Train.", {"CONFIG": "a config file, such as configs/x.yaml"})
    assert stopped.value.code == 2
    assert capsys.readouterr() == ("", f"error: {problem}; --help shows an example\n")


def test_help_lists_only_the_keys_that_a_program_accepts(called_with, capsys):
    called_with("--help")
    decoding = {name for name in KEYS if name.startswith("decoding.")}
    with pytest.raises(SystemExit):
        parse_command_line("Score.", {"RUN": "a run"}, accepted={"data.test", *decoding})
    listed = set(re.findall(r"^  ([a-z_]+(?:\.[a-z_]+)?)=", capsys.readouterr().out, re.MULTILINE))
    assert listed - {"key"} == decoding | {"data.test"}


ITEMS = ["no", "On", "null", "n", "~~", "1", "1e3", ".5", "0x1", "a: b", "a:", "a:b", "a, b.tsv", "c d.tsv", " x", "x "]
ITEMS += ["[x]", "{x}", 'say "x"', "it's", "#x", "x #y", "*x", "&x", "!x", "%x", "-", "- x", "?", "@x", "é", "/x", "_"]


@pytest.mark.parametrize("item", ITEMS)
def test_a_list_is_read_as_it_is_written(small_experiment, item):
    assert load_config(small_experiment, [f"data.train={format_value([item, 'no'])}"]).data.train == [item, "no"]


def value_of(path: Path, key: Key, text: str) -> Any:
    """What a config has for a key that is given so; the message, if it is refused."""
    try:
        config: Any = load_config(path, [f"{key.name}={text}"])
    except UserError as error:
        return f"refused: {error}"
    return reduce(getattr, key.name.split("."), config)


def extremes(key: Key) -> tuple[float, float]:
    """The least and the greatest value that a key's own bounds allow, in the type that computes with it."""
    bounds, step = key.metadata["bounds"], 1 if key.type is int else 0.0
    least = bounds.get("min", bounds.get("above", -TOO_LARGE[key.type]))
    greatest = bounds.get("max", bounds.get("below", TOO_LARGE[key.type]))
    if "above" in bounds:
        least = least + 1 if step else float(np.finfo(np.float32).tiny)  # above 0
    if "below" in bounds:
        greatest = greatest - 1 if step else float(np.nextafter(np.float32(greatest), np.float32(-np.inf)))
    return least, greatest


TOO_LARGE: dict[Any, float] = {int: 2**31 - 1, float: float(np.finfo(np.float32).max)}
NUMBERS = [key for key in KEYS.values() if key.type in (int, float) and key.metadata["bounds"]]


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_the_least_and_the_greatest_value_of_a_key_are_taken_and_what_lies_beyond_is_refused(small_experiment, key):
    """Or refused by a rule that names the key, as 3 heads are for two groups of them."""
    for value, beyond in zip(extremes(key), ("min above", "max below"), strict=True):
        found = value_of(small_experiment, key, repr(value))
        assert found == value or (str(found).startswith("refused: ") and key.name in found)
        if not key.metadata["bounds"].keys() & set(beyond.split()):
            continue
        further = value + (1 if key.type is int else 0.01) * (1 if "max" in beyond else -1)
        assert f"{key.name} must be " in value_of(small_experiment, key, repr(further))


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_four_surprises_of_yaml_are_refused_or_mean_what_they_say_and_no_count_is_negative(small_experiment, key):
    """In YAML 1.1, 010 is 8, 1:30 is 90, yes is true, and ~ is nothing."""
    if key.type is int and key.name != "training.seed":
        zero, negative = (str(value_of(small_experiment, key, text)) for text in ("0", "-1"))
        assert zero.startswith(("0", "refused: ")) and negative.startswith("refused: ")
    for text in ("010", "1:30", "yes", "~"):
        found, meant = value_of(small_experiment, key, text), os.path.expanduser(text)
        if not (key.type in (int, float, list[int], list[float]) or str(found).startswith("refused: ")):
            assert found == {str: meant, list[str]: [meant], bool: True}[key.type]
        else:
            assert str(found).startswith("refused: ") and key.name in found


@pytest.mark.nightly
@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_a_run_with_an_extreme_value_works_or_is_refused_in_a_line(call, small_experiment, tmp_path, key):
    for number, value in enumerate(extremes(key)):
        run, short = f"run_dir={tmp_path / str(number)}", ["training.minutes=0.02", "training.steps=2"]
        done = call("train.py", small_experiment, run, *short, f"{key.name}={value!r}", code=None)
        assert done.returncode in (0, 2), done.stderr.decode()[-2000:]
        assert b"Traceback" not in done.stderr
        assert done.returncode == 0 or done.stderr.decode().strip().splitlines()[-1].startswith("error: ")
