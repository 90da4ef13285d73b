"""Files and overrides become one checked RunConfig, or one clear line that names the key and its origin."""

import dataclasses
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UserError
from common.programs import ROOT
from configs.keys import KEYS
from configs.load import find_differences, load_config, load_run_config, save_config, to_yaml
from configs.schema import RunConfig
from tests.configs.conftest import refused
from tests.test_choices import CHOICES


def test_a_file_changes_what_it_states_and_nothing_else(config_file):
    config = load_config(config_file("model: {d_ff: 512}\ntraining:\n  steps: 7\n  learning_rate: 7e-4\n"))
    assert (config.model.d_ff, config.training.steps, config.training.learning_rate) == (512, 7, 7e-4)
    assert config.model == dataclasses.replace(RunConfig().model, d_ff=512)
    assert config.data == RunConfig().data


def test_overrides_win_over_the_file_and_the_last_over_the_first(plain):
    overrides = ["training.steps=20", "training.steps=30", "training.learning_rate=2", "dry_run=true"]
    config = load_config(plain, [*overrides, "data.columns=[es,en]", "data.allow_overlap=[train/test, train/valid]"])
    assert (config.training.steps, config.training.learning_rate, config.dry_run) == (30, 2.0, True)
    assert (config.data.columns, config.data.allow_overlap) == (["es", "en"], ["train/test", "train/valid"])
    assert isinstance(config.training.learning_rate, float) and type(config.data.columns) is list
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.training.steps = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    "text", ["007", "no", "a=b", "a: b", "[a]", " # c", "pairs.tsv #2.tsv", "{a}", "1:30", "a~", "[x].tsv"]
)
def test_text_on_the_command_line_is_taken_as_it_stands(plain, text):
    assert load_config(plain, [f"run_dir={text}"]).run_dir == text
    if text != "[a]":  # which is a list of one file
        assert load_config(plain, [f"data.train={text}"]).data.train == [text]


@pytest.mark.parametrize("text", ["0100", "-010", "00", "2:30:00", "1:30", "1:30.", "2:30.5", "190:20:30", "08"])
def test_what_yaml_would_read_as_another_number_is_refused(config_file, text):
    """In YAML 1.1, 0100 is 64 (octal), and 1:30 is 90 (base 60)."""
    for key in ("training.steps", "training.minutes", "training.seed"):
        complaint = f"YAML would read {text} as another number: write it without leading zeros and colons, or quote"
        path = config_file(f"training:\n  {key.partition('.')[2]}: {text}")
        assert refused(path).startswith(f"{path}:2: {complaint}")
        told = refused(config_file("training: {}"), f"{key}={text}")
        assert told.startswith(f"command line: {key}={text}: {complaint}")
    quoted = config_file(f"data: {{train: ['{text}']}}")
    assert load_config(quoted).data.train == [text]


def test_numbers_mean_what_they_say(plain):
    typed = {"100": 100, "1_000": 1000, "0x10": 16, "0b101": 5, "+7": 7, "0": 0}
    assert {text: load_config(plain, [f"training.seed={text}"]).training.seed for text in typed} == typed
    minutes = {"0.5": 0.5, ".5": 0.5, "5.": 5.0, "1e-3": 1e-3, "1E3": 1e3, "0.0100": 0.01}
    assert {text: load_config(plain, [f"training.minutes={text}"]).training.minutes for text in minutes} == minutes


def test_a_tilde_is_the_home_folder(plain, config_file, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PUENTE_CORPUS", "~/corpus")
    config = load_config(plain, ["run_dir=~/run", "data.train=[~/a.tsv,b~]", "data.valid=~/v.tsv"])
    home = f"{tmp_path}/home"
    assert (config.run_dir, config.data.root) == (f"{home}/run", f"{home}/corpus")
    assert (config.data.train, config.data.valid) == ([f"{home}/a.tsv", "b~"], f"{home}/v.tsv")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/base.yaml").write_text("training: {steps: 77}")
    assert load_config(config_file("extends: ~/base.yaml")).training.steps == 77


def test_a_run_lives_where_its_config_file_says_by_its_name(plain, config_file):
    assert load_config(plain).run_dir == os.path.join("runs", "experiment")
    assert load_config(plain, ["run_dir="]).run_dir == os.path.join("runs", "experiment")
    assert load_config(plain, ["run_dir=elsewhere"]).run_dir == "elsewhere"
    assert load_config(config_file("run_dir: here\ntraining: {steps: 1}")).run_dir == "here"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("training.lr", "the nearest valid name is training.learning_rate"),
        ("batch_rows", "the nearest valid name is data.batch_rows"),
        ("nosuch", "python train.py --help lists all keys"),
        ("training.foo", "python train.py --help lists all keys"),
        ("data..root", "the nearest valid name is data.root"),
        ("data.columns.0", "python train.py --help lists all keys"),
    ],
)
def test_an_unknown_key_stops_with_where_it_stands_and_the_nearest_name(plain, config_file, name, advice):
    assert refused(plain, f"{name}=1") == f"command line: unknown key {name}; {advice}"
    if name.count(".") < 2:
        path = config_file(as_yaml(name, "1"))
        assert refused(path) == f"{path}: unknown key {name}; {advice}"


LIST = "a list of strings such as [en, es] (quote what YAML would read as something else)"
WRONG = [
    *(("training.steps", value, f"a whole number, not {value}") for value in ("1.5", "'7'", "[1]", "{}")),
    ("training.steps", "1e3", "a whole number, not 1000.0"),
    ("training.steps", "", "a whole number, not nothing"),
    ("training.learning_rate", "fast", "a number, not 'fast'"),
    ("training.learning_rate", "yes", "a number, not True"),
    *(("dry_run", value, f"true or false, not {value}") for value in ("3", "'off'")),
    ("data.columns", "[1, 2]", f"{LIST}, not [1, 2]"),
    ("training.profile", "[2.5, 3]", "a list of whole numbers such as [21, 30], not [2.5, 3]"),
]


def as_yaml(key: str, value: str) -> str:
    section, dot, name = key.rpartition(".")
    return f"{section}: {{{name}: {value}}}" if dot else f"{name}: {value}"


@pytest.mark.parametrize("value", ["3", "no", "null", "[en]"])
def test_a_file_quotes_what_yaml_would_read_as_something_else(config_file, value):
    assert "data.source must be a string (quote" in refused(config_file(f"data: {{source: {value}}}"))


@pytest.mark.parametrize(("key", "value", "complaint"), WRONG)
def test_a_value_of_the_wrong_type_stops_with_key_value_type_and_place(plain, config_file, key, value, complaint):
    assert refused(plain, f"{key}={value}") == f"command line: {key} must be {complaint}"
    path = config_file(as_yaml(key, value))
    assert refused(path) == f"{path}: {key} must be {complaint}"


@pytest.mark.parametrize("value", ["nan", ".nan", ".NaN", "inf", "-inf", ".inf", "-.inf", "1e400", "Infinity"])
@pytest.mark.parametrize("key", [key.name for key in KEYS.values() if key.type is float])
def test_nothing_but_finite_numbers_passes(plain, config_file, key, value):
    assert refused(plain, f"{key}={value}").startswith(f"command line: {key} must be ")
    path = config_file(as_yaml(key, value))
    assert refused(path).startswith(f"{path}: {key} must be ")


@pytest.mark.parametrize("value", ["${oc.env:PUENTE_SECRET}", "a${run_dir}", "${", r"\${run_dir}", "???"])
@pytest.mark.parametrize("key", ["run_dir", "data.root", "data.columns", "training.steps"])
def test_nothing_is_interpolated_and_the_environment_stays_unread(plain, config_file, monkeypatch, key, value):
    monkeypatch.setenv("PUENTE_SECRET", "the-secret")
    listed = f"[es, '{value}']" if key == "data.columns" else value
    in_file = listed if key == "data.columns" else f"'{value}'"
    for message in (refused(plain, f"{key}={listed}"), refused(config_file(as_yaml(key, in_file)))):
        assert key in message or message.split(": ")[0].endswith("experiment.yaml")
        assert "the-secret" not in message


def test_python_tags_are_not_constructed(config_file, plain, tmp_path):
    trap = tmp_path / "trap"
    for tag in ("python/object/apply:os.mkdir", "python/object/new:os.mkdir"):
        assert "could not determine a constructor" in refused(config_file(f"run_dir: !!{tag} ['{trap}']"))
        assert "could not determine a constructor" in refused(plain, f"training.steps=!!{tag} ['{trap}']")
    assert not trap.exists()


def test_a_section_is_not_a_value(plain, config_file):
    for value in ("3", "{source: es}", ""):
        assert refused(plain, f"data={value}") == "command line: data is a section; set its keys, such as data.root"
    for text in ("data: 3", "data:", "data: [a]"):
        assert "data is a section; set its keys, such as data.root" in refused(config_file(text))
    assert "write training.steps as a key inside its section" in refused(config_file("training.steps: 3"))


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("model.dropout=2", "model.dropout must be"),
        ("model.dtype=bfloat16", "model.dtype=bfloat16 needs model.matmul_dtype=bfloat16"),
        ("data.columns=[en,en]", "data.columns must name two different languages"),
        ("data.columns=[id,en]", "data.source and data.target must be two of data.columns, [id, en]"),
        ("data.columns=[en,es,en]", "data.source and data.target must be two of data.columns, [en, es, en]"),
        ("data.encoding=klingon", "data.encoding=klingon is not an encoding that Python knows, such as latin-1"),
        ("data.train=[a.tsv, '']", "data.train must name at least one source, and none may be empty"),
        ("data.source=a/b", "data.source and data.target must be two of data.columns"),
        ("training.steps=0", "set training.steps or training.epochs"),
        ("training.weight_decay=0.1", "training.weight_decay needs training.optimizer=adamw"),
        ("training.accumulation=7", "data.batch_rows=64 cannot be cut into training.accumulation=7"),
        ("model.key_value_heads=3", "model.key_value_heads must divide model.num_heads, and 3 does not divide 4"),
        *((f"{key}=nosuch", f"{key} must be {', '.join(known[:-1])} or {known[-1]}") for key, known in CHOICES.items()),
        ("model.d_model=7", "model.d_model must be even: sinusoidal"),
        ("training.profile=[30,21]", "training.profile must be two updates"),
        ("decoding.max_length_factor=1e9", "decoding.max_length_factor must be at most 100"),
        ("model.encoder_layers=100000000", "model.encoder_layers must be at most 48"),
        ("model.decoder_layers=25", "model.decoder_layers must be at most 24"),
        ("tokenizer.vocab_size=2147483647", "tokenizer.vocab_size must be at most 1000000"),
        ("data.prefetch=2000000000", "data.prefetch must be at most 10000"),
        ("decoding.max_length_extra=100000000", "decoding.max_length_extra must be at most 10000"),
        ("decoding.checkpoint=../best", "decoding.checkpoint must be best, latest, a step number or an average's name"),
    ],
)
def test_impossible_combinations_name_the_file(plain, override, complaint):
    quoted = "" if complaint.startswith(override) else f" {override}"  # once
    assert refused(plain, override).startswith(f"{plain}{quoted}: {complaint}")


def test_views_that_nothing_tells_apart_are_refused(plain):
    assert "r_drop needs model.dropout" in refused(plain, "model.dropout=0", "training.consistency=r_drop")
    load_config(plain, ["model.dropout=0", "model.decoder_layer_drop=0.1", "training.consistency=r_drop"])
    load_config(plain, ["model.dropout=0", "training.consistency=simcut"])


def test_of_many_overrides_those_that_a_rule_names_are_quoted_or_those_of_its_section(plain, config_file):
    others = ["training.steps=20", f"data.root=/{'x' * 200}", "run_dir=elsewhere", "model.d_ff=128"]
    told = refused(plain, *others, "decoding.search=beam", "decoding.beam_size=2", "decoding.candidates=3")
    assert told.startswith(
        f"{plain} decoding.search=beam decoding.beam_size=2 decoding.candidates=3: decoding.candidates must be at most"
    )
    told = refused(plain, *others, "model.dropout=0.5", "model.dropout=3")
    assert told.startswith(f"{plain} model.dropout=3: ")
    path = config_file("training: {steps: 10}\nmodel: {head_dim: 7}")  # of which the rule names no override
    told = refused(path, "training.steps=20", "model.positions=rotary", "run_dir=elsewhere")
    assert told.startswith(f"{path} model.positions=rotary: model.head_dim must be even: rotary")


def test_a_config_file_that_is_not_there_stops_with_those_that_are(tmp_path, monkeypatch):
    shipped = sorted(path.name for path in (ROOT / "configs").glob("*.yaml"))
    monkeypatch.chdir(ROOT)
    assert refused("absent") == f"there is no config file absent; configs/ has {', '.join(shipped)}"
    assert refused("quikstart") == "there is no config file quikstart; the nearest is configs/quickstart.yaml"
    monkeypatch.chdir(tmp_path)
    known = f"{ROOT / 'configs'}/ has {', '.join(shipped)}"
    assert refused("configs/absent.yaml") == f"there is no config file configs/absent.yaml; {known}"
    (tmp_path / "mine.yaml").touch()
    assert refused("other.yaml") == "there is no config file other.yaml; ./ has mine.yaml"
    nearest = f"the nearest is {ROOT / 'configs' / 'quickstart.yaml'}"  # whatever config lies here
    assert refused("configs/quickstart.yaml") == f"there is no config file configs/quickstart.yaml; {nearest}"


def test_a_run_in_place_of_its_config_and_the_reverse(tmp_path, plain):
    run = tmp_path / "runs" / "mine"
    config = load_config(plain, [f"run_dir={run}"])
    save_config(config, run / "config.yaml")
    saved = run / "config.yaml"
    assert refused(run) == f"there is no config file {run}; it is a run directory, whose config is {saved}"
    for path, why in (
        (saved, f"it is the config of the run {run}"),
        (plain, "it is a config file, which train.py takes"),
        (run.parent, f"it has no config.yaml; in it are {run}"),
        (tmp_path / "nothing", "it has no config.yaml"),
    ):
        with pytest.raises(UserError) as caught:
            load_run_config(path)
        assert str(caught.value) == f"{path} is not a run directory: {why}"


@settings(max_examples=30)
@given(root=st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])), rate=st.floats(1e-37, 1e38))
def test_any_text_and_number_survives_saving(tmp_path_factory, root, rate):
    if "${" in root or root == "???":
        return
    run = tmp_path_factory.getbasetemp() / "survives"
    plain = RunConfig()
    data = dataclasses.replace(plain.data, root=root, train=[root or "x"])
    training = dataclasses.replace(plain.training, learning_rate=rate)
    config = RunConfig(run_dir=str(run), data=data, training=training)
    save_config(config, run / "config.yaml")
    assert load_run_config(run) == config


def test_a_run_that_was_begun_when_the_profile_was_a_number_is_read(plain, tmp_path):
    path = tmp_path / "config.yaml"
    text = to_yaml(load_config(plain))
    assert "  profile: []\n" in text
    path.write_text(text.replace("  profile: []\n", "  profile: 0\n"))
    assert load_run_config(tmp_path).training.profile == []


def test_differences_name_the_key_and_both_values(plain):
    old = load_config(plain)
    new = load_config(plain, ["training.steps=11", "data.columns=[es,en]", "run_dir=elsewhere", "dry_run=true"])
    assert find_differences(old, old) == {}
    told = {"data.columns": "data.columns: [en, es] → [es, en]", "training.steps": "training.steps: 10 → 11"}
    assert find_differences(old, new) == told
