"""A config may extend another; the environment ranks between file and command line; a single source is a list."""

import os

import pytest

from common.errors import UserError
from configs.load import load_config
from configs.schema import RunConfig
from tests.configs.conftest import refused


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("PUENTE_CORPUS", raising=False)


@pytest.fixture
def configs(tmp_path):
    """Write config files by name and return the path of the first."""

    def write(**texts: str):
        for name, text in texts.items():
            path = tmp_path / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / f"{next(iter(texts)).replace('__', '/')}.yaml"

    return write


CHAIN = {
    "top": "extends: middle.yaml\ntraining: {steps: 3}\n"
    "data: {columns: [fr, es], source: fr, train: [a.tsv], weights: []}",
    "middle": "model: {d_ff: 64}\ntraining: {steps: 2, seed: 7}\nextends: base.yaml",
    "base": "training: {steps: 1, seed: 1, learning_rate: 0.5}\nmodel: {d_ff: 32, dropout: 0.25}\n"
    "data: {train: [b.tsv, c.tsv], weights: [1, 0.5]}",
}


def test_each_file_states_what_differs_from_the_one_below(configs):
    config = load_config(configs(**CHAIN))
    assert (config.training.steps, config.training.seed, config.training.learning_rate) == (3, 7, 0.5)
    assert (config.model.d_ff, config.model.dropout) == (64, 0.25)
    assert (config.data.columns, config.data.source) == (["fr", "es"], "fr")
    assert (config.data.train, config.data.weights) == (["a.tsv"], [])  # lists are replaced and not joined
    assert config.model.d_model == RunConfig().model.d_model
    assert load_config(configs(**CHAIN), ["training.seed=9"]).training.seed == 9
    middle = load_config(configs(**CHAIN).with_name("middle.yaml"))
    assert (middle.training.steps, middle.run_dir) == (2, os.path.join("runs", "middle"))


def test_the_base_lies_beside_the_file_and_not_where_one_stands(configs, tmp_path, monkeypatch):
    path = configs(
        deep__top="extends: ../base.yaml",
        base="extends: other/below.yaml\ntraining: {steps: 5}",
        other__below="extends: beside.yaml\ntraining: {seed: 3}",
        other__beside="model: {d_ff: 48}",
        beside="model: {d_ff: 1000}",
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for spelling in (path, os.path.relpath(path)):
        config = load_config(spelling)
        assert (config.training.steps, config.training.seed, config.model.d_ff) == (5, 3, 48)
    absolute = configs(top=f"extends: {path}")
    assert load_config(absolute).model.d_ff == 48


@pytest.mark.parametrize(
    ("files", "last", "back_to"),
    [
        ({"top": "extends: a.yaml", "a": "extends: b.yaml", "b": "extends: ./a.yaml"}, "b", "a"),
        ({"top": "extends: sub/a.yaml", "sub__a": "extends: ../sub/../top.yaml"}, "sub/a", "top"),
    ],
)
def test_a_circle_is_named(configs, tmp_path, monkeypatch, files, last, back_to):
    path = configs(**files)
    monkeypatch.chdir(tmp_path)
    for told in (refused(path), refused(path.name)):
        assert told.startswith(f"{tmp_path / last}.yaml: extends goes in a circle, back to ")
        assert os.path.realpath(told.partition("back to ")[2]) == str(tmp_path / f"{back_to}.yaml")


def test_the_run_of_a_base_is_not_inherited(configs):
    """The config that a run has saved may be a base; the new experiment must not go on in the old one's folder."""
    path = configs(top="extends: a.yaml\ntraining: {steps: 1}", a="run_dir: runs/a\ndry_run: true\nmodel: {d_ff: 96}")
    config = load_config(path)
    assert (config.run_dir, config.dry_run, config.model.d_ff) == (f"runs/{path.stem}", False, 96)


@pytest.mark.parametrize("base", ["nowhere.yaml", "", "[a.yaml]", "."])
def test_a_base_that_is_no_config_file_is_named_with_the_file(configs, base):
    path = configs(top=f"extends: {base}\ntraining: {{steps: 1}}")
    assert refused(path).startswith(f"{path}: extends must be another config file, relative to this one, not ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("training: {stepz: 3}", ": unknown key training.stepz; the nearest valid name is training.steps"),
        ("data: {source: es,\n  source: en}", ":2: "),
    ],
)
def test_a_mistake_in_a_base_names_the_base(configs, tmp_path, text, problem):
    path = configs(top="extends: base.yaml\ntraining: {steps: 1}", base=text)
    assert refused(path).startswith(f"{tmp_path / 'base.yaml'}{problem}")


def test_the_environment_comes_between_file_and_command_line(configs, monkeypatch):
    path = configs(top="extends: base.yaml\ndata: {root: of-the-file}", base="data: {root: of-the-base}")
    steps = ["training.steps=1"]
    assert load_config(path, steps).data.root == "of-the-file"
    monkeypatch.setenv("PUENTE_CORPUS", "of-the-environment")
    assert load_config(path, steps).data.root == "of-the-environment"
    assert load_config(path, [*steps, "data.root=of-the-command-line"]).data.root == "of-the-command-line"
    monkeypatch.setenv("PUENTE_CORPUS", "")  # as good as not set
    assert load_config(path, steps).data.root == "of-the-file"
    monkeypatch.setenv("PUENTE_CORPUS", "${oc.env:HOME}")
    with pytest.raises(UserError, match=r"^environment variable PUENTE_CORPUS: data\.root must be a value"):
        load_config(path, steps)


@pytest.mark.parametrize("name", ["folder/news.LANG.gz", "phrasebook:grammar", "opus:en-es:train[:9]"])
def test_a_lone_source_is_a_list_of_one(configs, name):
    plain = configs(top="training: {steps: 1}")
    assert load_config(plain, [f"data.train={name}"]).data.train == [name]
    assert load_config(configs(top=f"data:\n  train: {name}\ntraining: {{steps: 1}}")).data.train == [name]
    listed = load_config(plain, [f"data.train=[b.tsv, '{name}']", "data.weights=[1,2]"])
    assert listed.data.train == ["b.tsv", name]


def test_weights_are_numbers_above_nothing_one_for_each_source(configs):
    two = configs(top="data: {train: [a.tsv, b.tsv], weights: [1, 0.5]}\ntraining: {steps: 1}")
    assert load_config(two).data.weights == [1.0, 0.5]
    assert load_config(two, ["data.weights=[]"]).data.weights == []
    assert load_config(two, ["data.weights=[2, 1e-3]"]).data.weights == [2.0, 0.001]
    rule = "data.weights needs a number above 0 for each of 2 sources of data.train"
    for weights in ("[1]", "[1, 2, 3]", "[1, 0]"):
        assert refused(two, f"data.weights={weights}") == f"{two} data.weights={weights}: {rule}"
    problem = "data.weights must be a list of numbers such as [1, 0.5], not [1, [2]]"
    assert refused(two, "data.weights=[1, [2]]") == f"command line: {problem}"
