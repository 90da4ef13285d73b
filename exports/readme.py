"""The README of an exported model: what it is, how to load it, and how to get the run's translations.

Each format has a template beside this module, readme.FORMAT.md.
"""

import shlex
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

from common.errors import UserError
from common.files import read_json_object
from common.text import as_list_item, visible
from common.text_table import escape_markdown
from exports.formats import FORMATS, plain
from model.config import DecodingConfig
from training.run.layout import DATA

WIDTH = 120  # characters of a line
TEMPLATES = {form: Path(__file__).with_suffix(f".{form}.md").read_text(encoding="utf-8") for form in FORMATS}


def write_readme(folder: Path, form: str, facts: dict[str, Any]) -> None:
    """Write the README of a format; ``facts`` are what its template names, words of others as they are."""
    words = {name: escape_markdown(facts[name]) for name in ("name", "source", "target", "license")} | {
        "search": "\n".join(wrap(facts["search"], WIDTH, break_long_words=False, break_on_hyphens=False)),
        "languages": ", ".join(map(as_list_item, (facts["source"], facts["target"]))),
        "license_id": as_list_item(facts["license_id"]),
        "example_in_shell": shlex.quote(visible(facts["example"])),
        "example_in_python": repr(facts["example"]),
        "tagged_in_python": repr(facts["tagged"]),
    }
    (folder / "README.md").write_text(Template(TEMPLATES[form]).substitute(facts | words), encoding="utf-8")


def describe_data(run_dir: Path) -> str:
    """A line for each training source of the run, without its folder; UserError if their record is damaged."""
    try:
        sources = read_json_object(run_dir / DATA)["files"]["train"]
        names = [Path(each["file"]).name if Path(each["file"]).is_absolute() else each["file"] for each in sources]
        facts = [f"{each['pairs']:,} pairs, SHA-256 {each['sha256']}" for each in sources]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{run_dir / DATA} is missing or damaged, but the README quotes it: bring it back") from None
    lines = [f"- {escape_markdown(f'{name}: {fact}')}" for name, fact in zip(names, facts, strict=True)]
    return "\n".join(["Trained on:", "", *lines])


def describe_scores(report: dict[str, Any] | None) -> str:
    """The run's BLEU and chrF with their signatures; UserError if the report has others' values."""
    if report is None:
        return "The run has no scores yet."
    note = report.get("bleu_note")
    try:
        return "- " + escape_markdown(
            f"{Path(str(report['test_set'])).name}: BLEU {report['bleu']:.2f} ({report['signature']}), "
            f"chrF {report['chrf']:.2f} ({report['chrf_signature']}), step {report['step']}"
            f"{f'. {note}' if note else ''}"
        )
    except (KeyError, TypeError, ValueError):
        raise UserError("the report of the run's scores is damaged: score it again with python eval.py RUN") from None


def describe_search(form: str, decoding: DecodingConfig) -> str:
    """How the program of a format searches, and what of the run's search it does not do."""
    missing = [key for key, value in vars(plain(decoding)).items() if vars(decoding)[key] != value]
    lacks = "".join(f" It has no decoding.{key}={vars(decoding)[key]}, and searches without." for key in missing)
    if decoding.beam_size == 1:
        return f"`translate.py` takes the likeliest token at each place (greedy search).{lacks}"
    match form:
        case "ct2":
            return describe_ctranslate2(decoding) + lacks
        case "hf":
            return describe_transformers(decoding) + lacks
        case _:
            raise NotImplementedError(f"the format {form}")


def describe_ctranslate2(decoding: DecodingConfig) -> str:
    return (
        f"`translate.py` asks for {2 * decoding.beam_size} translations in a beam of {decoding.beam_size} "
        "(`length_penalty=1e-9, patience=2, return_end_token=True`), and takes the one with the best "
        f"log P(Y) / {divisor(decoding)}, with `</s>` counted in |Y|. With its own normalization, CTranslate2 may end "
        "a search earlier, and finds other translations of some sentences. The run never takes `<pad>`, `<unk>` or "
        "`<s>` into a translation; here they are possible, but a trained model gives them next to no probability."
    )


def describe_transformers(decoding: DecodingConfig) -> str:
    settings = (
        f'`translate.py` searches in a beam of {decoding.beam_size} with `early_stopping="never"`, never takes '
        f"`<pad>`, `<unk>` or `<s>`, and ranks by log P(Y) / {divisor(decoding)}, with `</s>` counted in |Y|. Where a "
        "translation reaches its limit of length, one without an end may displace one that the run would take. "
        "`max_length` in `generation_config.json` is the run's limit for the longest source that it translates whole."
    )
    if decoding.normalization == "length" or not decoding.length_penalty:
        return f"{settings} `generation_config.json` says the same, so that `model.generate` does it, too."
    return (
        f"{settings} `model.generate` alone, with `generation_config.json`, divides by "
        f"|Y|^{decoding.length_penalty:g}, and finds other translations of some sentences. A `length_penalty` of the "
        "class `GNMT` in `translate.py` makes it divide as the run does."
    )


def divisor(decoding: DecodingConfig) -> str:
    base = {"gnmt": "((5 + |Y|) / 6)", "length": "|Y|"}[decoding.normalization]
    return f"{base}^{decoding.length_penalty:g}"
