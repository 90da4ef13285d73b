"""scripts/findings.py: tables from kept reports, as compare.py has them from the runs; and the tables of docs/."""

import json
import shutil
import tarfile

import pytest

from scripts import compare
from scripts.findings import DOCS, compute, main

PAGE = """# Found

<!-- begin compare sweep/base,* sweep/* model.dropout -->

nothing yet

<!-- end compare -->

<!-- begin lengths sweep/base,* sweep/model.drop* -->

nothing yet

<!-- end lengths -->
"""
RATES = {"model.norm=pre": 0.4, "model.dropout=0.3": 0.2, "model.norm=post": 0.4}  # of wrong words; pre is the default


@pytest.fixture
def docs(make_run, tmp_path):
    """A page, and a folder of runs: two seeds of a baseline and of two other systems."""
    for noise, (change, rate) in enumerate(RATES.items()):
        for seed in (1, 2):
            run = f"sweep/{change if noise else 'base'},seed={seed}"
            make_run(run, rate, 2 * noise + seed, change, f"training.seed={seed}", report="valid")
    (tmp_path / "docs/reports").mkdir(parents=True)
    (tmp_path / "docs/found.md").write_text(PAGE, encoding="utf-8")
    return tmp_path / "docs"


def test_tables_from_kept_reports_are_those_of_the_runs(docs, run_main, tmp_path):
    sweep, figures, late = tmp_path / "sweep", tmp_path / "figures.json", tmp_path / "late/sweep"
    late.mkdir(parents=True)
    for run in sorted(sweep.iterdir())[3:]:
        shutil.move(run, late)
    for folder in (sweep, late):
        assert run_main(main, "--keep", folder, "--docs", docs)[0::2] == (0, "")
    for run in late.iterdir():
        shutil.move(run, sweep)
    assert run_main(compare.main, *sorted(sweep.iterdir()), "--set", "valid", "--json", figures)[0] == 0
    facts = json.loads(figures.read_text(encoding="utf-8"))
    with tarfile.open(docs / "reports/sweep.tar.xz") as archive:
        archive.extractall(tmp_path / "kept", filter="data")
    assert not [file for file in tmp_path.glob("kept/*/*/*") if str(tmp_path).encode() in file.read_bytes()]
    lines = [line for line in (docs / "found.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.replace("\u2212", "-").strip("|").split("|")] for line in lines]
    other = facts["against"][0]
    bleu, chrf, groups = other["bleu"], other["chrf"], other["lengths"]
    assert [len(row) for row in cells] == [7] * 4 + [1 + len(groups)] * 4
    assert cells[2][:2] == ["baseline", f"{facts['bleu'][0]['mean']:.2f}"]
    between = "{low:+.2f} to {high:+.2f}".format(**bleu["interval"])
    expected = [f"{facts['bleu'][1]['mean']:.2f}", f"{bleu['difference']:+.2f}", between, f"{bleu['p_adjusted']:.4f}"]
    assert cells[3][:6] == ["`model.dropout=0.3`", *expected, "better"]
    assert cells[3][6].startswith(f"{chrf['difference']:+.2f}, ")
    assert cells[4][1:] == [f"{each['name']} ({each['size']})" for each in groups]
    assert cells[6][1:] == [f"{each['base']:.2f}" for each in groups]
    assert cells[7][1].startswith(f"{groups[0]['other'] - groups[0]['base']:+.2f} (")


def test_two_searches_of_the_same_models_are_compared_run_by_run(docs, make_run, run_main, tmp_path):
    searches, figures = tmp_path / "searches", tmp_path / "figures.json"
    for seed, rate in ((1, 0.2), (2, 0.4)):
        for beam, more in ((5, 0.0), (1, 0.02)):
            name = f"beam{beam}-seed{seed}"
            change = f"decoding.beam_size={beam}"
            run = make_run(f"models/{seed}", rate + more, seed, f"training.seed={seed}", change, report=name)
            (searches / name).mkdir(parents=True)
            report = json.loads((run / f"eval/{name}.json").read_text()) | {"run": str(run)}
            (searches / name / "test.json").write_text(json.dumps(report))
            (run / f"eval/{name}.jsonl").rename(searches / name / "test.jsonl")
    page = PAGE[: PAGE.index("<!-- begin lengths")].replace("sweep/base,*", "searches/beam5*")
    (docs / "found.md").write_text(page.replace("sweep/* model.dropout", "searches/beam1*"))
    assert run_main(main, "--keep", searches, "--docs", docs)[0::2] == (0, "")
    reports = [searches / f"beam{beam}-seed{seed}/test.json" for beam in (5, 1) for seed in (1, 2)]
    assert run_main(compare.main, *reports, "--json", figures)[0] == 0
    bleu = json.loads(figures.read_text(encoding="utf-8"))["against"][0]["bleu"]
    between = "{low:+.2f} to {high:+.2f}".format(**bleu["interval"]).replace("-", "\u2212")
    assert between in (docs / "found.md").read_text(encoding="utf-8")


def test_what_was_not_kept_has_no_table(docs, refuses):
    refuses(main, "docs/reports has no sweep/base,* sweep/*", "--docs", docs)


def test_what_cannot_be_kept_is_named(make_run, refuses, tmp_path):
    """Files of a run, such as data.json, are no reports; two reports in one folder would have one name."""
    run = make_run("runs/only-tested", 0.2, 1, report="test")
    (run / "data.json").write_text("{}")
    refuses(main, "has no run with a report on the validation set", "--keep", tmp_path / "runs")
    for name in ("a", "b"):
        make_run("reports/beam", 0.2, 1, report=name)
    (tmp_path / "reports/beam/eval").rename(tmp_path / "reports/both")
    refuses(main, f"{tmp_path / 'reports/both'} has several reports", "--keep", tmp_path / "reports")


@pytest.mark.slow
def test_the_tables_of_the_documentation_are_those_of_its_reports():
    assert [page.name for page, text in compute(DOCS).items() if text != page.read_text(encoding="utf-8")] == []
