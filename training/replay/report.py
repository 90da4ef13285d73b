"""Text and JSON for an inspected update and for a comparison of two runs."""

import json
import math
from dataclasses import asdict
from typing import Any

from training.replay.comparison import Comparison
from training.replay.inspect_step import Inspection, ModuleNorms, PairLoss
from training.replay.replay import count_updates
from training.run.metrics import finite_or_text


def sort_by_loss(pairs: list[PairLoss]) -> list[PairLoss]:
    """The worst first, led by those whose loss is not finite."""
    return sorted(pairs, key=lambda pair: -pair.loss if math.isfinite(pair.loss) else -math.inf)


def format_inspection(update: Inspection) -> str:
    """An update as text."""
    place = f"checkpoint {update.start}" if update.start else "the start"
    repeated = update.step - 1 - update.start
    lines = [
        f"run            {update.run}",
        f"step           {update.step}, batch {update.index} of epoch {update.epoch} (from 0)",
        f"batch          SHA-256 {update.batch}",
        f"               {update.rows} rows, {len(update.pairs)} pairs, {update.source_tokens} source + "
        f"{update.target_tokens} target tokens",
        f"rebuilt from   {place}" + (f", {count_updates(repeated)} repeated" if repeated else ""),
        f"learning rate  {update.learning_rate!r}",
        f"loss           {update.loss!r} per target token, cross-entropy {update.cross_entropy!r}",
        f"gradient norm  {update.gradient_norm!r} before clipping",
        f"update         {_describe_outcome(update)}",
        *(f"{record:<14} {verdict}" for record, verdict in update.verified.items()),
        f"\n{'module':<24} {'gradient':>11} {'parameters':>11} {'update':>11} {'update/parameters':>18}  not finite",
        *map(_format_module, update.modules),
        "\nrow segment      loss tokens  source → target",
        *(
            f"{pair.row:>3} {pair.segment:>7} {pair.loss:>9.4f} {pair.tokens:>6}  {pair.source} → {pair.target}"
            for pair in update.pairs
        ),
    ]
    return "\n".join(lines)


def _describe_outcome(update: Inspection) -> str:
    if not update.skipped:
        return "taken"
    if math.isfinite(update.loss) and math.isfinite(update.gradient_norm):
        return "skipped: it is not finite or too large, though loss and gradient are finite"
    return "skipped: loss or gradient is not finite"


def _format_module(module: ModuleNorms) -> str:
    ratio = module.update / module.parameters if module.parameters else math.nan
    return (
        f"{module.name:<24} {module.gradient:>11.4g} {module.parameters:>11.4g} {module.update:>11.4g} "
        f"{ratio:>18.3g}  {module.not_finite or ''}"
    ).rstrip()


def format_comparison(comparison: Comparison) -> str:
    """A comparison of two runs as text."""
    lines = [" → ".join(comparison.runs)]
    for name in ("config", "environment", "data"):
        lines += _format_block(name, getattr(comparison, name))
    for run, steps in zip(comparison.runs, comparison.changed_at, strict=True):
        if steps:
            lines.append(
                f"changed      {run} went on with another config or corpus after step {', '.join(map(str, steps))}"
            )
    if comparison.start is not None:
        differences = [f"differ first at step {comparison.line}: {line}" for line in comparison.line_differences]
        lines += [*_format_block("metrics", differences), *_format_updates(comparison)]
    return "\n".join([*lines, *comparison.not_reproduced, _describe_verdict(comparison)])


def _format_block(name: str, lines: list[str]) -> list[str]:
    headings = [name, *[""] * len(lines)]
    return [f"{heading:<12} {line}" for heading, line in zip(headings, lines or ["no difference"], strict=False)]


def _format_updates(comparison: Comparison) -> list[str]:
    """The last step at which both runs are equal and the first at which they are not."""
    start, updates = comparison.start, comparison.updates
    origin = f"the checkpoints at step {start}, which are equal" if start else "the start"
    lines = [f"replayed     from {origin}"]
    if updates:
        lines.append(f"\n{'step':>8}  {'batch':<12} {'loss':<20} {'gradient norm':<20} run")
    for pair in updates if comparison.divergence else updates[-1:]:
        lines += [
            f"{update.step:>8}  {update.batch[:10]:<12} {update.loss!r:<20} {update.gradient_norm!r:<20} "
            f"{run}{'  (skipped)' if update.skipped else ''}"
            for run, update in zip(comparison.runs, pair, strict=True)
        ]
    return [*lines, ""]


def _describe_verdict(comparison: Comparison) -> str:
    if divergence := comparison.divergence:
        leaf = f", {divergence.difference}" if divergence.difference else ""
        return f"first difference: step {divergence.step}, {divergence.what}{leaf}"
    if not comparison.differ:
        return f"no difference up to step {comparison.until}"
    return (
        f"what was recorded differs at step {comparison.until}, and yet both replays are equal up to there: it was the "
        "machine, its versions or chance, and neither config nor data"
    )


def to_json(report: Inspection | Comparison) -> str:
    """One JSON object; NaN and infinities, which JSON lacks, become text."""
    return json.dumps(_replace_not_finite(asdict(report)), ensure_ascii=False, allow_nan=False)


def _replace_not_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_not_finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_not_finite(inner) for inner in value]
    return finite_or_text(value) if isinstance(value, float) else value
