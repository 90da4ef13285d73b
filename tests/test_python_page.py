"""The code of docs/python.md, of docs/tour.ipynb and of the trackers in docs/running.md runs."""

import doctest
import json
import re

import pytest

from common.programs import ROOT
from configs.load import load_config
from tests.prepared import save_untrained
from tests.test_clones import run_code


def form_of(text: str) -> str:
    """The text with one word for each kind of value: a list is as one entry of it."""
    for pattern, word in (
        (r"'[^'\n]*'", "text"),
        (r"(?<!\w)-?\d+(\.\d*)?(e-?\d+)?", "number"),
        ("True|False", "truth"),
    ):
        text = re.sub(pattern, word, text)
    return re.sub(r"(\(text, number\)|text|number)(, \1)+", r"\1", " ".join(text.split()))


class OfTheSameForm(doctest.OutputChecker):
    """The page shows trained runs, and the test has others."""

    def check_output(self, want, got, optionflags):
        return form_of(want) == form_of(got)


def code_of(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_the_page_of_python_prints_what_has_the_form_of_what_it_shows(small_experiment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, change in (("scaled", "model.score=scaled_dot_product"), ("general", "model.score=general")):
        save_untrained(load_config(small_experiment, [f"run_dir=runs/tour/{name}", change]))
    page = doctest.DocTestParser().get_doctest("".join(code_of("python.md", "pycon")), {}, "python.md", None, 0)
    assert len(page.examples) > 15
    assert doctest.DocTestRunner(OfTheSameForm(), verbose=False).run(page).failed == 0


@pytest.mark.slow
def test_the_tour_trains_scores_and_compares(tmp_path):
    """With four updates of a tiny model, and translations of at most three tokens."""
    cells = json.loads((ROOT / "docs/tour.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    tiny = "encoder_layers=1 decoder_layers=2 d_model=32 num_heads=2 head_dim=8 d_ff=32".split()
    changes = [*(f"model.{change}" for change in tiny), "decoding.max_length_factor=0", "decoding.max_length_extra=3"]
    short = ", ".join(map(json.dumps, [*changes, "decoding.beam_size=1"]))
    for whole, part in (("STEPS = 400", "STEPS = 4"), ('"decoding.beam_size=1"', short)):
        assert whole in code
        code = code.replace(whole, part)
    for name in ("train.py", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = run_code(code, tmp_path, ROOT)
    reports = [tmp_path / f"runs/tour/{name}/eval/test.json" for name in ("scaled", "general")]
    scaled, general = (json.loads(path.read_text(encoding="utf-8"))["bleu"] for path in reports)
    assert f"BLEU {scaled:.2f}, from" in done.stdout and f"{general - scaled:+.2f} BLEU, from" in done.stdout, (
        done.stderr
    )


TRACKERS = {  # what the page calls, in place of the packages, which are not installed here
    "wandb": """
class init:
    __init__ = lambda run, project, name, config: print(name, config["model"]["d_model"])
    __enter__ = lambda run: run
    __exit__ = lambda run, *error: None
    log = lambda run, values, step: print(json.dumps([step, values]))
""",
    "mlflow": """
set_experiment, log_params = (lambda name: None), (lambda values: print(values["model.d_model"]))
start_run = lambda run_name: open(print(run_name, end=" ") or __file__)
log_metrics = lambda values, step: print(json.dumps([step, values]))
""",
}


@pytest.mark.parametrize("name", TRACKERS)
def test_the_code_for_trackers_logs_every_metric(name, tmp_path):
    run = tmp_path / "runs/quickstart"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("{data: {}, model: {d_model: 8}, training: {}}")
    lines = [{"step": 5, "kind": "train", "time": "now", "loss": 1.5}, {"step": 5, "kind": "valid", "bleu": "inf"}]
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / f"{name}.py").write_text(f"import json\n{TRACKERS[name]}")
    code = "".join(block for block in code_of("running.md", "python") if f"import {name}" in block or "yaml" in block)
    done = run_code(code, tmp_path, tmp_path)
    assert done.stdout.splitlines()[:1] == ["quickstart 8"], done.stderr
    logged = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert logged == [[5, {"train/loss": 1.5}], [5, {"valid/bleu": float("inf")}]]
