"""Compute the tables of docs/*.md again from the reports of their runs: python scripts/findings.py

What those pages find rests on reports that are kept in docs/reports/NAME.tar.xz. A table stands between
<!-- begin compare RUNS … KEY … --> and <!-- end compare -->. RUNS are patterns of paths in the archives, such as
NAME/*, and the first run's system is the baseline. With KEYs of the config, the table has only the systems that change
no other key; p is adjusted for all systems. With lengths in place of compare it is BLEU by words of the source.

--keep adds an archive: of every run in a folder, the config and the report on the validation set.
"""

import io
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from lzma import LZMAError
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from cli.command_line import Parser, path
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from evaluation.comparison.compare import Against, Comparison, compare_systems
from evaluation.comparison.tables import span
from evaluation.report import sentences_beside
from evaluation.sentences import as_lines, read_sentences
from experiment.evaluated_runs import group_by_system, read_reported
from training.run.layout import CONFIG, report_path

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- begin (compare|lengths) (.+?) -->\n\n)(.*?)(\n\n<!-- end \2 -->)", re.DOTALL)


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument(
        "--keep", type=path, metavar="FOLDER", help="keep the reports of runs/sweeps/NAME, then compute"
    )
    parser.add_argument("--docs", type=path, default=DOCS, metavar="FOLDER", help="where the pages are")
    arguments = parser.parse_args()
    if arguments.keep:
        write_atomically(arguments.docs / "reports" / f"{arguments.keep.name}.tar.xz", pack(arguments.keep))
    for page, text in compute(arguments.docs).items():
        write_atomically(page, text)
        print(f"written  {page}")


def pack(folder: Path) -> bytes:
    """The archive of all runs in a folder that have a report on the validation set."""
    content, runs = io.BytesIO(), sorted(each.parent.parent for each in folder.glob("*/eval/valid.json"))
    if not runs:
        raise UserError(f"{folder} has no run with a report on the validation set, RUN/eval/valid.json")
    with tarfile.open(fileobj=content, mode="w:xz", preset=9) as archive:
        for run_dir in runs:
            report = report_path(run_dir, "valid")
            for file in (run_dir / CONFIG, report, sentences_beside(report)):
                lines = smaller(file) if file.suffix == ".jsonl" else file.read_bytes()
                member = tarfile.TarInfo(str(file.relative_to(folder.parent)))
                member.size = len(lines)
                archive.addfile(member, io.BytesIO(lines))
    return content.getvalue()


def smaller(file: Path) -> bytes:
    """The sentences without what comparisons do not read."""
    kept = [replace(each, tokens=[], log_prob=0.0, score=0.0) for each in read_sentences(file)]
    return as_lines(kept).encode()


def compute(docs: Path) -> dict[Path, str]:
    """The pages with tables, computed from what is kept."""
    with tempfile.TemporaryDirectory() as folder:
        for file in docs.glob("reports/*.tar.xz"):
            try:
                with tarfile.open(file) as archive:
                    archive.extractall(folder, filter="data")
            except (tarfile.TarError, LZMAError, EOFError) as error:
                raise UserError(f"{file} is damaged: bring it back") from error
        return {
            page: BLOCK.sub(lambda found: found[1] + table(Path(folder), found[2], found[3].split()) + found[5], text)
            for page in sorted(docs.glob("*.md"))
            if BLOCK.search(text := page.read_text(encoding="utf-8"))
        }


def table(folder: Path, kind: str, words: list[str]) -> str:
    """The Markdown of a block, by what its mark asks for."""
    patterns = [word for word in words if "/" in word]
    names = dict.fromkeys(str(each) for pattern in patterns for each in sorted(folder.glob(pattern)))
    if not names:
        raise UserError(f"docs/reports has no {' '.join(patterns)}")
    found = [read_reported(name, "valid") for name in names]
    comparison = compare_systems(group_by_system(found), str(found[0].report.get("test_set", "")))
    keys = set(words) - set(patterns)
    chosen = [each for each in comparison.against if not keys or keys.issuperset(changed_keys(each))]
    if not chosen:
        raise UserError(f"docs/reports has no other systems than the baseline for {' '.join(words)}")
    rows = list((by_length if kind == "lengths" else overall)(comparison, chosen))
    header, *rest = (f"| {' | '.join([row[0], *(cell.replace('-', '−') for cell in row[1:])])} |" for row in rows)
    return "\n".join([header, "|" + "---|" * len(rows[0]), *rest])


def changed_keys(other: Against) -> list[str]:
    return [line.partition(": ")[0] for line in other.config]


def label(other: Against) -> str:
    """What the config changes, such as `model.norm=post`."""
    return " ".join(f"`{re.sub(': .* → ', '=', line)}`" for line in other.config)


def overall(comparison: Comparison, chosen: list[Against]) -> Iterator[list[str]]:
    """A row for the baseline, and for each other system what chance leaves of its difference."""
    yield ["", "BLEU", "difference", "interval", "p (Holm)", "verdict", "chrF: difference, interval"]
    yield ["baseline", f"{comparison.bleu[0].mean:.2f}", "", "", "", "", ""]
    for other in chosen:
        bleu, chrf = other.bleu, other.chrf
        mean = comparison.bleu[0].mean + bleu.difference
        p = f"{bleu.p_adjusted:.4f}" if bleu.p_adjusted >= 1e-4 else "< 0.0001"
        of_chrf = f"{chrf.difference:+.2f}, {span(chrf.interval, '+')}"
        yield [
            label(other),
            f"{mean:.2f}",
            f"{bleu.difference:+.2f}",
            span(bleu.interval, "+"),
            p,
            bleu.verdict,
            of_chrf,
        ]


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
