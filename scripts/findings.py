"""Recompute the tables in docs/*.md from the reports of their runs: python scripts/findings.py

The findings on those pages are based on reports kept in docs/reports/NAME.tar.xz. A table is placed between
<!-- begin compare RUNS … KEY … --> and <!-- end compare -->. RUNS are patterns of paths in the archives, such as
NAME/*, and the system of the first run is the baseline. With config KEYs, the table has only the systems that change no
other key; p is adjusted for all systems. With lengths instead of compare, it shows BLEU by words of the source.

--keep adds the runs in a folder to an archive, or replaces those of the same name. For every run, the archive has the
config and, sentence by sentence, the counts from which BLEU and chrF on the validation set are computed, but no text of
the corpus. Instead of runs, the folder may have reports, each in a folder of its own, as eval.py --output writes them.
"""

import io
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from lzma import LZMAError
from pathlib import Path

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from cli.command_line import Parser, path
from common.errors import UserError, exit_on_user_error
from common.files import read_json_object, sha256, write_atomically
from configs.load import load_config, to_yaml
from evaluation.comparison.compare import Against, Comparison, compare_systems
from evaluation.comparison.significance import Statistics
from evaluation.comparison.tables import span
from evaluation.groups import Groups, group_sentences
from evaluation.report import sentences_beside
from evaluation.sentences import Sentence
from experiment.evaluated_runs import SAME, ReportedRun, group_by_system, read_reported
from training.run.layout import CONFIG

REPORT, COUNTS = "report.json", "counts.npz"  # next to the config of an archived run
DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- begin (compare|lengths) (.+?) -->\n\n)(.*?)(\n\n<!-- end \2 -->)", re.DOTALL)


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("--keep", type=path, metavar="FOLDER", help="keep reports of runs/sweeps/NAME, then compute")
    parser.add_argument("--docs", type=path, default=DOCS, metavar="FOLDER", help="where the pages are")
    arguments = parser.parse_args()
    if arguments.keep:
        archive = arguments.docs / "reports" / f"{arguments.keep.name}.tar.xz"
        write_atomically(archive, pack(arguments.keep, archive))
    for page, text in compute(arguments.docs).items():
        write_atomically(page, text)
        print(f"written  {page}")


def pack(folder: Path, kept: Path) -> bytes:
    """The archive ``kept``, if it exists, with all runs in a folder that have a report on the validation set.

    If the folder has reports without runs, they are packed instead.
    """
    content, found = io.BytesIO(), find_reported(folder)
    if not found:
        expected = "RUN/eval/valid.json, and no reports of eval.py --output"
        raise UserError(f"{folder} has no run with a report on the validation set, {expected}")
    with tempfile.TemporaryDirectory() as files:
        if kept.exists():
            extract(kept, files)
        for run, path in found.items():
            for name, data in files_of(read_reported(str(path), "valid")).items():
                write_atomically(Path(files, folder.name, run, name), data)
        with tarfile.open(fileobj=content, mode="w:xz", preset=9) as archive:
            for file in sorted(Path(files).glob("*/*/*")):
                member = tarfile.TarInfo(str(file.relative_to(files)))
                member.size = file.stat().st_size
                archive.addfile(member, io.BytesIO(file.read_bytes()))
    return content.getvalue()


def extract(kept: Path, folder: str) -> None:
    """UserError for a damaged archive."""
    try:
        with tarfile.open(kept) as archive:
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, LZMAError, EOFError) as error:
        raise UserError(f"{kept} is damaged: restore it") from error


def find_reported(folder: Path) -> dict[str, Path]:
    """Runs with a report on the validation set, or else reports, by name; UserError for two reports in a folder."""
    runs = sorted(each.parent.parent for each in folder.glob("*/eval/valid.json"))
    reports = [each for each in sorted(folder.glob("*/*.json")) if sentences_beside(each).exists()]
    found = {run.name: run for run in runs} or {each.parent.name: each for each in reports}
    if not runs and len(found) < len(reports):
        crowded = next(each.parent for each in reports if each not in found.values())
        raise UserError(f"{crowded} has several reports: give each a folder of its own with eval.py --output FOLDER")
    return found


def files_of(run: ReportedRun) -> dict[str, bytes]:
    """The files of a run that comparisons read, without any text of its corpus or any path of the machine."""
    arrays, lengths = io.BytesIO(), [len(each.source.split()) for each in run.sentences]
    groups = group_sentences(run.sentences, str(run.report.get("test_set", "")))
    facts = {"bleu": run.bleu.counts, "chrf": run.chrf.counts, "groups": groups, "lengths": lengths}
    np.savez(arrays, allow_pickle=False, **{name: np.asarray(values, np.int32) for name, values in facts.items()})
    config = replace(run.config, run_dir=".", data=replace(run.config.data, root="."))
    report = {key: run.report.get(key) for key in SAME} | {"model": sha256(run.model)}
    return {CONFIG: to_yaml(config).encode(), REPORT: json.dumps(report).encode(), COUNTS: arrays.getvalue()}


def read_kept(folder: Path) -> tuple[ReportedRun, Groups]:
    """A run from an archive and the groups of its sentences; instead of their texts, only their lengths are known."""
    config, report = load_config(folder / CONFIG, []), read_json_object(folder / REPORT)
    arrays = np.load(folder / COUNTS, allow_pickle=False)
    sentences = [Sentence("word " * int(length), [""], "", [], 0.0, 0.0, True, 1) for length in arrays["lengths"]]
    metrics = Statistics(BLEU(), arrays["bleu"].astype(float)), Statistics(CHRF(), arrays["chrf"].astype(float))
    name = f"{folder.parent.name}/{folder.name}"
    model = str(report.get("model", name))
    return ReportedRun(name, config.training.seed, model, sentences, *metrics, folder, config, report), arrays["groups"]


def compute(docs: Path) -> dict[Path, str]:
    """The pages with tables, computed from the archives."""
    with tempfile.TemporaryDirectory() as folder:
        for file in docs.glob("reports/*.tar.xz"):
            extract(file, folder)
        return {
            page: BLOCK.sub(lambda found: found[1] + table(Path(folder), found[2], found[3].split()) + found[5], text)
            for page in sorted(docs.glob("*.md"))
            if BLOCK.search(text := page.read_text(encoding="utf-8"))
        }


def table(folder: Path, kind: str, words: list[str]) -> str:
    """The Markdown table of a block, as its opening comment specifies it."""
    patterns = [word for word in words if "/" in word]
    names = dict.fromkeys(str(each) for pattern in patterns for each in sorted(folder.glob(pattern)))
    if not names:
        raise UserError(f"docs/reports has no {' '.join(patterns)}")
    found, (groups, *_) = zip(*(read_kept(Path(name)) for name in names), strict=True)
    comparison = compare_systems(group_by_system(found), groups)
    keys = set(words) - set(patterns)
    changed = ({line.partition(": ")[0] for line in each.config} for each in comparison.against)
    chosen = [each for each, names in zip(comparison.against, changed, strict=True) if not keys or names <= keys]
    if not chosen:
        raise UserError(f"docs/reports has no systems but the baseline for {' '.join(words)}")
    rows = list((by_length if kind == "lengths" else overall)(comparison, chosen))
    header, *rest = (f"| {' | '.join([row[0], *(cell.replace('-', '−') for cell in row[1:])])} |" for row in rows)
    return "\n".join([header, "|" + "---|" * len(rows[0]), *rest])


def label(other: Against) -> str:
    """What the config changes, such as `model.norm=post`."""
    return " ".join(f"`{re.sub(': .* → ', '=', line)}`" for line in other.config)


def overall(comparison: Comparison, chosen: list[Against]) -> Iterator[list[str]]:
    """A row for the baseline, and one for each other system with its difference and significance."""
    yield ["", "BLEU", "difference", "interval", "p (Holm)", "verdict", "chrF: difference, interval"]
    yield ["baseline", f"{comparison.bleu[0].mean:.2f}", "", "", "", "", ""]
    for other in chosen:
        bleu, chrf = other.bleu, other.chrf
        mean = comparison.bleu[0].mean + bleu.difference
        p = f"{bleu.p_adjusted:.4f}" if bleu.p_adjusted >= 1e-4 else "< 0.0001"
        of_bleu = [f"{mean:.2f}", f"{bleu.difference:+.2f}", span(bleu.interval, "+"), p, bleu.verdict]
        yield [label(other), *of_bleu, f"{chrf.difference:+.2f}, {span(chrf.interval, '+')}"]


def by_length(comparison: Comparison, chosen: list[Against]) -> Iterator[list[str]]:
    """BLEU of the baseline by words of the source, and the differences of the others with their intervals."""
    groups = chosen[0].lengths
    yield ["words of the source", *(f"{each.name} ({each.size:,})" for each in groups)]
    yield ["baseline", *(f"{each.base:.2f}" for each in groups)]
    for other in chosen:
        cells = [f"{each.other - each.base:+.2f} ({span(each.interval, '+')})" for each in other.lengths]
        yield [label(other), *cells]


if __name__ == "__main__":
    main()
