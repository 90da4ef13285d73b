"""Take an update of a run again and look into it, or find the first update at which two runs differ.

  python scripts/replay.py RUN --step S       rebuilds the batch of update S, takes that update again, and tells its
                                              loss, its gradient by module, and every sentence pair that it saw
  python scripts/replay.py RUN OTHER_RUN      tells what config, versions, data and metrics say of two runs, then takes
                                              their updates again side by side until they part; --step S: no further

Nothing is written but the run's cache of row counts. The updates between the newest checkpoint before S and S are
repeated, so a run with more checkpoints (training.keep, training.save_every) is replayed faster. Exit code: 0, or 1
where two runs differ, or 2 for a mistake.
"""

import argparse
import functools
import json
import math
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

import jax
from tqdm import tqdm

from cli.command_line import Parser
from common.errors import UserError, exit_on_user_error
from configs.load import differences, load_config, load_run_config
from configs.schema import RunConfig
from data.prepare import prepare
from data.tokenizer import load_tokenizer
from training.devices.preflight import choose_kernels
from training.replay.divergence import Bounds, Parting, find_bounds, in_lockstep, parting_of_states, unlike_checkpoint
from training.replay.inspect_step import inspect
from training.replay.replay import Replay, Run, Stretch, Taken, recorded_lines, unlike_recorded
from training.run.checkpoint import damaged_steps, good_steps, notes
from training.run.config_history import changed_at, record_of
from training.state import init_state

EXAMPLES = """examples:
  python scripts/replay.py runs/tatoeba-small --step 1200 --sort loss | head -40
  python scripts/replay.py runs/tatoeba-small runs/tatoeba-small-again
"""
OF_DATA = ("fingerprint", "tokenizer.sha256", "direction", "training_pairs")


def main() -> None:
    """Entry point."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this as quietly as any filter
    with exit_on_user_error():
        arguments = command_line()
        if arguments.OTHER is None:
            facts = facts_of_update(Path(arguments.RUN), arguments.step)
            if arguments.sort == "loss":
                facts["pairs"] = worst_first(facts["pairs"])
            print_json(facts) if arguments.json else print_update(facts)
            return
        facts = facts_of_two(Path(arguments.RUN), Path(arguments.OTHER), arguments.step)
        print_json(facts) if arguments.json else print_two(facts)
    sys.exit(int(facts["differ"]))


def command_line() -> argparse.Namespace:
    parser = Parser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("RUN", help="a run directory, such as runs/tatoeba-small")
    parser.add_argument("OTHER", nargs="?", help="a run to compare it with")
    parser.add_argument("--step", type=int, metavar="S", help="the update to look into; of two runs, the last compared")
    parser.add_argument("--sort", choices=["row", "loss"], default="row", help="order of the pairs; loss: worst first")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    arguments = parser.parse_args()
    if arguments.OTHER is None and arguments.step is None:
        parser.error("name the update to look into with --step S, or a second run")
    if arguments.step is not None and arguments.step < 1:
        parser.error(f"--step must be at least 1, not {arguments.step}: updates are counted from 1")
    return arguments


# One update


def facts_of_update(run_dir: Path, step: int) -> dict[str, Any]:
    """What is told of update ``step``."""
    run = open_run(run_dir)
    refuse_beyond_end(run, step)
    start = newest_before(run_dir, step)
    replay = replay_from(run, start, step)
    for _ in progress(range(start, step - 1), replay):
        replay.take()
    inspected = inspect(replay)
    facts = {"run": str(run_dir), "start": start, **asdict(inspected)}
    return facts | {"verified": verified(replay, replay.take())}


def open_run(run_dir: Path) -> Run:
    """The run, with what each of its updates was made with as soon as that is asked for."""
    load_run_config(run_dir)  # or a UserError: not a run directory
    for damaged in damaged_steps(run_dir):
        print(f"note: the checkpoint at step {damaged} of {run_dir} is damaged and left out", file=sys.stderr)

    @functools.cache
    def prepared(config_path: Path, data_path: Path) -> Stretch:
        return prepare_stretch(run_dir, config_path, data_path)

    def stretch(step: int) -> Stretch:
        return prepared(record_of(run_dir, "config.yaml", step), record_of(run_dir, "data.json", step))

    return Run(run_dir, stretch, recorded_lines(run_dir))


def prepare_stretch(run_dir: Path, config_path: Path, data_path: Path) -> Stretch:
    """The batches by these records of a run; UserError if the corpus does not give them any more."""
    config = load_config(config_path, [f"run_dir={run_dir}"])
    choose_kernels(config.model, (config.data.row_length,) * 2)
    is_old = config_path.name != "config.yaml"
    prepared = prepare(config.data, config.tokenizer, config.training.seed, run_dir, allow_changes=is_old)
    recorded, now = report_of(data_path).get("fingerprint"), prepared.stream.fingerprint
    if not isinstance(recorded, str):
        raise UserError(
            f"{data_path} is missing or damaged, so nothing tells whether the batches are the same; undo that"
        )
    if recorded != now:
        raise UserError(
            f"the corpus has changed since {data_path} was written: it gives other batches (fingerprint "
            f"{recorded[:8]} → {now[:8]}). Bring the old one back, or name its folder with PUENTE_CORPUS"
        )
    return Stretch(config.model, config.training, prepared.stream)


def report_of(path: Path) -> dict[str, Any]:
    """A JSON object; empty where it cannot be read."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return report if isinstance(report, dict) else {}


def refuse_beyond_end(run: Run, step: int) -> None:
    """UserError for a step that the run has not taken and never will by its config."""
    config = load_run_config(run.folder).training
    if step <= run.reached:
        return
    if config.steps and step > config.steps:
        raise UserError(f"--step {step} lies beyond the end of {run.folder}, training.steps={config.steps}")
    if config.epochs and run.stretch(step).stream.epoch_of(step - 1)[0] >= config.epochs:
        raise UserError(f"--step {step} lies beyond the end of {run.folder}, training.epochs={config.epochs}")


def newest_before(run_dir: Path, step: int) -> int:
    """The newest good checkpoint from which update ``step`` can be reached, or 0."""
    return max([0, *(good for good in good_steps(run_dir) if good < step)])


def replay_from(run: Run, start: int, step: int) -> Replay:
    """The run at ``start``; UserError if an update up to ``step`` had a corpus that is no more."""
    run.stretch(step)
    for changed in reversed([changed for changed in changed_at(run.folder) if start < changed < step]):
        try:
            run.stretch(changed)
        except UserError as error:
            raise UserError(
                f"update {step} of {run.folder} needs a good checkpoint of the steps {changed} to {step - 1}, and "
                f"there is none (training.keep keeps more of them); those before cannot be repeated: {error}"
            ) from None
    return Replay(run, start)


def progress(steps: Iterable[int], *replays: Replay) -> Iterable[int]:
    """The steps, with a word on how many there are and a bar on a terminal."""
    steps = list(steps)
    if steps:
        folders = " and ".join(str(replay.run.folder) for replay in replays)
        start = f"the checkpoint at step {steps[0]}" if steps[0] else "the start"
        print(f"{folders}: repeating {in_number(len(steps), 'update')} from {start}", file=sys.stderr)
    return tqdm(steps, unit="step", leave=False, disable=None)


def verified(replay: Replay, taken: Taken) -> dict[str, str]:
    """What the run itself says of the update, beside what its replay came to: by the name of the record."""
    told = {}
    if taken.line is not None and taken.step in replay.run.recorded:
        told["metrics"] = "; ".join(unlike_recorded(replay.run, taken)) or "equal, to the last digit"
    if taken.step in good_steps(replay.run.folder):
        same_batches = notes(replay.run.folder, taken.step)["batches"] == replay.batches
        differing = unlike_checkpoint(replay)
        told["batches"] = f"{'equal' if same_batches else 'differ'}, 1 to {taken.step}"
        told["checkpoint"] = (
            f"differs, first in {differing.leaf}, there by up to {differing.largest:.3g}"
            if differing
            else "equal, bit for bit"
        )
    return told


def print_update(facts: dict[str, Any]) -> None:
    """For people."""
    start, step = facts["start"], facts["step"]
    place = f"checkpoint {start}" if start else "the start"
    between = f", {in_number(step - 1 - start, 'update')} repeated" if start < step - 1 else ""
    print(f"run            {facts['run']}")
    print(f"step           {step}, batch {facts['index']} of epoch {facts['epoch']} (from 0)")
    print(f"batch          SHA-256 {facts['batch']}")
    print(
        f"               {facts['rows']} rows, {len(facts['pairs'])} pairs, {facts['source_tokens']} source + "
        f"{facts['target_tokens']} target tokens"
    )
    print(f"rebuilt from   {place}{between}")
    print(f"learning rate  {facts['learning_rate']!r}")
    print(f"loss           {facts['loss']!r} per target token, cross-entropy {facts['cross_entropy']!r}")
    print(f"gradient norm  {facts['gradient_norm']!r} before clipping")
    print(f"update         {verdict_on_update(facts)}")
    for record, told in facts["verified"].items():
        print(f"{record:<14} {told}")
    print_modules(facts["modules"])
    print("\nrow segment      loss tokens  source → target")
    for pair in facts["pairs"]:
        print(
            f"{pair['row']:>3} {pair['segment']:>7} {pair['loss']:>9.4f} {pair['tokens']:>6}  {pair['source']} → "
            f"{pair['target']}"
        )


def verdict_on_update(facts: dict[str, Any]) -> str:
    """Whether it was taken, and if not, why."""
    if not facts["skipped"]:
        return "taken"
    if math.isfinite(facts["loss"]) and math.isfinite(facts["gradient_norm"]):
        return "skipped: it is not finite or too large, though loss and gradient are finite"
    return "skipped: loss or gradient is not finite"


def worst_first(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By loss, and before all others those whose loss is not finite."""
    return sorted(pairs, key=lambda pair: -pair["loss"] if math.isfinite(pair["loss"]) else -math.inf)


def print_modules(modules: list[dict[str, Any]]) -> None:
    print(f"\n{'module':<24} {'gradient':>11} {'parameters':>11} {'update':>11} {'update/parameters':>18}  not finite")
    for module in modules:
        ratio = module["update"] / module["parameters"] if module["parameters"] else math.nan
        print(
            f"{module['name']:<24} {module['gradient']:>11.4g} {module['parameters']:>11.4g} {module['update']:>11.4g} "
            f"{ratio:>18.3g}  {module['not_finite'] or ''}".rstrip()
        )


# Two runs


def facts_of_two(run_dir: Path, other_dir: Path, limit: int | None) -> dict[str, Any]:
    """What is told of two runs. ``differ``: whether states, updates or recorded metrics do."""
    one, other = open_run(run_dir), open_run(other_dir)
    configs = load_run_config(run_dir), load_run_config(other_dir)
    environments = [record(folder, "environment.json") for folder in (run_dir, other_dir)]
    data = [record(folder, "data.json") for folder in (run_dir, other_dir)]
    facts: dict[str, Any] = {
        "runs": [str(run_dir), str(other_dir)],
        "config": differences(*configs),
        "changed_at": [changed_at(run_dir), changed_at(other_dir)],
        "environment": differing_keys(environments[0], environments[1]),
        "data": differing_keys(data[0], data[1], OF_DATA),
    }
    if other_shape := first_other_shape(one, other):
        return facts | {"differ": True, "parting": asdict(Parting(0, f"parameters: {other_shape}"))}
    return facts | side_by_side(one, other, limit)


def record(run_dir: Path, name: str) -> dict[str, Any]:
    """A JSON file of the run, its inner keys joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in report_of(run_dir / name).items():
        flat |= {f"{key}.{inner}": each for inner, each in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def differing_keys(old: dict[str, Any], new: dict[str, Any], keys: Iterable[str] = ()) -> list[str]:
    """Lines "key: old → new"."""
    keys = keys or [*old, *(key for key in new if key not in old)]
    return [f"{key}: {old.get(key)} → {new.get(key)}" for key in keys if old.get(key) != new.get(key)]


def first_other_shape(one: Run, other: Run) -> str | None:
    """The first parameter that one of two models has not, or has in another shape."""
    shapes, others = shapes_of(one.folder), shapes_of(other.folder)
    for name in [*shapes, *others]:
        if shapes.get(name) != others.get(name):
            mine, its = shapes.get(name, "missing"), others.get(name, "missing")
            return f"{name} is {mine} in {one.folder}, {its} in {other.folder}"
    return None


def shapes_of(run_dir: Path) -> dict[str, tuple[int, ...]]:
    config: RunConfig = load_config(record_of(run_dir, "config.yaml", 1), [f"run_dir={run_dir}"])
    vocab_size = load_tokenizer(run_dir).vocab_size
    params = jax.eval_shape(lambda: init_state(config.model, config.training, vocab_size)).params
    leaves = jax.tree.leaves_with_path(params)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf.shape for path, leaf in leaves}


def side_by_side(one: Run, other: Run, limit: int | None) -> dict[str, Any]:
    """The updates of both runs, from the newest state that they are known to share until they part."""
    bounds = bounds_of(one, other, limit)
    replays = replay_from(one, bounds.start, bounds.until), replay_from(other, bounds.start, bounds.until)
    parting = parting_of_states(bounds.start, *(replay.state for replay in replays))
    updates: list[list[dict[str, Any]]] = []  # the last two steps
    unlike: dict[Path, list[str]] = {}  # by run, of the first such step: those after it follow from it
    steps = range(bounds.start, bounds.start if parting else bounds.until)
    for _, (mine, its, found) in zip(progress(steps, *replays), in_lockstep(*replays, bounds.until), strict=False):
        updates, parting = [*updates, [asdict(mine), asdict(its)]][-2:], found
        for replay, taken in zip(replays, (mine, its), strict=True):
            if told := unlike_records(replay, taken):
                unlike.setdefault(replay.run.folder, told)
    return {
        **asdict(bounds),
        "parting": asdict(parting) if parting else None,
        "updates": updates,
        "unlike_records": [told for lines in unlike.values() for told in lines],
        "differ": bool(parting) or bounds.line is not None or bounds.apart is not None,
    }


def bounds_of(one: Run, other: Run, limit: int | None) -> Bounds:
    """Between which steps two runs part, as far as their records tell."""
    for run in (one, other):
        refuse_beyond_end(run, limit or 0)
    return find_bounds(one, other, limit or min(one.reached, other.reached))


def unlike_records(replay: Replay, taken: Taken) -> list[str]:
    """What a run has written down of this step that its replay does not give."""
    told, folder = unlike_recorded(replay.run, taken), replay.run.folder
    lines = [f"the replay of {folder} does not give its recorded line at step {taken.step}: {'; '.join(told)}"]
    found = unlike_checkpoint(replay) if taken.step in good_steps(folder) else None
    if found:
        told_of_leaf = f"it differs first in {found.leaf}, by up to {found.largest:.3g}"
        lines.append(f"the replay of {folder} does not give its checkpoint at step {taken.step}: {told_of_leaf}")
    return lines if told else lines[1:]


def print_two(facts: dict[str, Any]) -> None:
    """For people."""
    one, other = facts["runs"]
    print(f"{one} → {other}")
    for name in ("config", "environment", "data"):
        print_block(name, facts[name])
    for run, changed in zip(facts["runs"], facts["changed_at"], strict=True):
        if changed:
            print(f"changed      {run} went on with another config or corpus after step {', '.join(map(str, changed))}")
    if "start" in facts:
        line = facts["line"]
        print_block("metrics", [f"differ first at step {line}: {told}" for told in facts["told_by_line"]])
        print_updates(facts)
    for told in facts.get("unlike_records", []):
        print(told)
    print(verdict_on(facts))


def print_block(name: str, lines: list[str]) -> None:
    for head, line in zip([name, *[""] * len(lines)], lines or ["no difference"], strict=False):
        print(f"{head:<12} {line}")


def print_updates(facts: dict[str, Any]) -> None:
    """The last step at which both are equal and the first at which they are not."""
    start, parting = facts["start"], facts["parting"]
    print(f"replayed     from {f'the checkpoints at step {start}, which are equal' if start else 'the start'}")
    if facts["updates"]:
        print(f"\n{'step':>8}  {'batch':<12} {'loss':<20} {'gradient norm':<20} run")
    for update in facts["updates"] if parting else facts["updates"][-1:]:
        for run, each in zip(facts["runs"], update, strict=True):
            skipped = "  (skipped)" if each["skipped"] else ""
            print(
                f"{each['step']:>8}  {each['batch'][:10]:<12} {each['loss']!r:<20} {each['gradient_norm']!r:<20} "
                f"{run}{skipped}"
            )
    print()


def verdict_on(facts: dict[str, Any]) -> str:
    """The last line."""
    if parting := facts["parting"]:
        found = parting["differing"]
        leaf = f", first in {found['leaf']}, there by up to {found['largest']:.3g}" if found else ""
        return f"first difference: step {parting['step']}, {parting['what']}{leaf}"
    if not facts["differ"]:
        return f"no difference up to step {facts['until']}"
    return (
        f"what was recorded differs at step {facts['until']}, and yet both replays are equal up to there: it was the "
        "machine, its versions or chance, and neither config nor data"
    )


def print_json(facts: dict[str, Any]) -> None:
    """For programs: numbers that are not finite, which JSON has not, as text."""
    print(json.dumps(tame(facts), ensure_ascii=False, allow_nan=False))


def tame(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: tame(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [tame(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def in_number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


if __name__ == "__main__":
    main()
