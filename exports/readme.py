"""The README of an exported model, which explains how to get the run's translations. Templates: readme.FORMAT.md."""

import shlex
from pathlib import Path
from string import Template
from typing import Any

from common.errors import UserError
from common.files import read_json_object
from common.text import as_list_item, visible
from common.text_table import escape_markdown
from exports.formats import FORMATS, plain
from model.config import DecodingConfig
from training.run.layout import DATA

TEMPLATES = {form: Path(__file__).with_suffix(f".{form}.md").read_text(encoding="utf-8") for form in FORMATS}


def write_readme(folder: Path, form: str, facts: dict[str, Any]) -> None:
    """Write the README of a format; ``facts`` has unescaped values for the names in its template."""
    words = {name: escape_markdown(facts[name]) for name in ("name", "source", "target", "license")} | {
        "languages": ", ".join(map(as_list_item, (facts["source"], facts["target"]))),
        "license_id": as_list_item(facts["license_id"]),
        "example_in_shell": shlex.quote(visible(facts["example"])),
        "example_in_python": repr(facts["example"]),
        "tagged_in_python": repr(facts["tagged"]),
    }
    (folder / "README.md").write_text(Template(TEMPLATES[form]).substitute(facts | words), encoding="utf-8")


def describe_data(run_dir: Path) -> str:
    """A line for each training source of the run, without folders; UserError if the record of sources is damaged."""
    try:
        sources = read_json_object(run_dir / DATA)["files"]["train"]
        names = [Path(each["file"]).name if Path(each["file"]).is_absolute() else each["file"] for each in sources]
        facts = [f"{each['pairs']:,} pairs, SHA-256 {each['sha256']}" for each in sources]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{run_dir / DATA} is missing or damaged, but the README quotes it: restore it") from None
    lines = [f"- {escape_markdown(f'{name}: {fact}')}" for name, fact in zip(names, facts, strict=True)]
    return "\n".join(["Trained on:", "", *lines])


def describe_scores(report: dict[str, Any] | None) -> str:
    """The run's BLEU and chrF with their signatures; UserError if the report is damaged."""
    if report is None:
        return "The run has no scores yet."
    note = f". {report['bleu_note']}" if report.get("bleu_note") else ""
    try:
        bleu = f"BLEU {report['bleu']:.2f} ({report['signature']})"
        chrf = f"chrF {report['chrf']:.2f} ({report['chrf_signature']}), step {report['step']}{note}"
        return "- " + escape_markdown(f"{Path(str(report['test_set'])).name}: {bleu}, {chrf}")
    except (KeyError, TypeError, ValueError):
        raise UserError("the report of the run's scores is damaged: score it again with python eval.py RUN") from None


def describe_search(decoding: DecodingConfig) -> dict[str, str]:
    """The search settings of the run that the templates name, and those that the exported programs do not support."""
    settings, kept = vars(decoding), vars(plain(decoding))
    missing = [f"`decoding.{key}={value}`" for key, value in settings.items() if kept[key] != value]
    named = {key: str(settings[key]) for key in ("beam_size", "normalization", "length_penalty")}
    return named | {"missing": ", ".join(missing) or "none"}
