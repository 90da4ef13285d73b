"""What a report tells of runs in tables: how they were trained, every score, and what differs between them."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import jax

from common.files import read_json_object
from common.text_table import Table
from configs.keys import DEFAULTS, format_value
from configs.load import flatten
from experiment.report.runs import ShownRun
from model.transformer import structure
from training.run.layout import REPORTS

UNKNOWN = "–"


def training_table(runs: Sequence[ShownRun]) -> Table:
    """What was trained on what, and how far."""
    header = [
        "run",
        "model",
        "parameters",
        "trained on",
        "pairs",
        "updates",
        "minutes",
        "best validation BLEU",
        "device",
    ]
    return Table("Training", "", header, [training_row(run) for run in runs])


def training_row(run: ShownRun) -> list[str]:
    model, data, valid = run.config.model, run.config.data, run.curves["valid"]
    planned = number(run.config.training.steps) if run.config.training.steps else "any"
    steps, minutes = ([*valid[key], *run.curves["train"][key]] for key in ("step", "minutes"))
    scored = [(bleu, step) for bleu, step in zip(valid["bleu"], valid["step"], strict=True) if bleu is not None]
    best, step = max(scored, default=(None, None))
    return [
        run.name,
        f"{model.encoder_layers} + {model.decoder_layers} layers of width {model.d_model}",
        count_parameters(run),
        f"{', '.join(data.train)} ({' and '.join(f'{each.source} to {each.target}' for each in data.directions)})",
        number(run.data.get("training_pairs")),
        f"{number(max(steps, default=0))} of {planned}",
        f"{max(filter(None, minutes), default=0):,.1f}",
        UNKNOWN if best is None else f"{best:.2f} at update {number(step)}",
        ", ".join(map(str, run.environment.get("devices", []))) or UNKNOWN,
    ]


def count_parameters(run: ShownRun) -> str:
    """Those of the config's model with the vocabulary that data.json records."""
    tokenizer = run.data.get("tokenizer")
    if not isinstance(tokenizer, dict) or type(vocab_size := tokenizer.get("vocab_size")) is not int:
        return UNKNOWN
    return number(sum(leaf.size for leaf in jax.tree.leaves(structure(run.config.model, vocab_size)[1])))


def number(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else UNKNOWN


def scores_table(runs: Sequence[ShownRun]) -> Table:
    """Every report of every run; what a report lacks, as those of older versions do, is left empty."""
    header = ["run", "set", "update", "BLEU", "interval", "chrF", "sources", "search", "signature of BLEU"]
    rows = []
    for run in runs:
        for path in sorted((run.folder / REPORTS).glob("*.json")):
            report = read_json_object(path)
            bleu, chrf = (f"{report[key]:.2f}" if type(report.get(key)) is float else "" for key in ("bleu", "chrf"))
            facts = [number(report.get("step")), bleu, interval_of(report), chrf, number(report.get("sources"))]
            rows.append([run.name, path.stem, *facts, search_of(report), str(report.get("signature", ""))])
    note = "Intervals of 95 % are for this model and other sentences; valid is that of the last validation."
    return Table("Scores", note, header, rows)


def interval_of(report: dict[str, Any]) -> str:
    interval = report.get("bleu_interval")
    return f"{interval['low']:.2f} to {interval['high']:.2f}" if isinstance(interval, dict) else ""


def search_of(report: dict[str, Any]) -> str:
    decoding = report.get("decoding")
    return f"{decoding.get('search', 'beam')} {decoding.get('beam_size', '')}" if isinstance(decoding, dict) else ""


def settings_table(runs: Sequence[ShownRun]) -> Table:
    """The keys that a run does not leave at their default."""
    defaults, *configs = map(flatten, (DEFAULTS, *(run.config for run in runs)))
    changed = [key for key, value in defaults.items() if any(config[key] != value for config in configs)]
    rows = [[key, *(format_value(config[key]) for config in (defaults, *configs))] for key in changed]
    return Table("Settings", "All other keys have their defaults.", ["key", "default", *names(runs)], rows)


def environment_table(runs: Sequence[ShownRun]) -> Table:
    """What the runs ran on; settings that no run has are left out."""
    facts = [flat(run.environment) for run in runs]
    keys = [key for key in dict.fromkeys(chain(*facts)) if any(fact.get(key) for fact in facts)]
    return Table("Environment", "", ["", *names(runs)], [[key, *(fact.get(key, "") for fact in facts)] for key in keys])


def flat(environment: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in environment.items():
        inside = value if isinstance(value, dict) else {key: value}
        found |= {str(name): format_value(each) for name, each in inside.items()}
    return found


def names(runs: Sequence[ShownRun]) -> list[str]:
    return [run.name for run in runs]
