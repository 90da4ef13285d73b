"""Export a trained run to another library: python scripts/export.py RUN ct2 FOLDER [key=value …].

  ct2  CTranslate2, which translates in C++ on CPUs and NVIDIA's GPUs: --quantization int8 makes it small and fast

FOLDER is written whole or not at all. It has the model, the tokenizer, a program that translates without this project,
and a README with the search settings that give the run's translations. A process of its own then loads it with the
other library, and compares log-probabilities and translations of held-out sentences with the run's.
decoding.checkpoint=NAME exports another checkpoint or an average.
"""

import argparse
import json
import shutil
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cli.command_line import parse_command_line, positive_integer
from cli.load_run import LoadedRun, load_run
from cli.reports import find_own_report
from common.errors import UserError, exit_on_user_error
from common.files import read_json_object
from data.sources.corpus import load_held_out
from data.tokenizer import MODEL_FILE
from evaluation.translate import Translator
from exports.check import Check, check
from exports.folder import write_whole
from exports.readme import describe_scores, write_readme
from exports.search import describe, plain, settings_of

PROGRAMS = Path(__file__).parents[1] / "exports" / "programs"
QUANTIZATIONS = ("float32", "float16", "int16", "int8", "int8_float32", "int8_float16")  # those that need no PyTorch
FLOAT32 = ["model.dtype=float32", "model.matmul_dtype=float32"]
TOLERANCE = 1e-4  # nats a token, of an export in float32


@exit_on_user_error()
def main() -> None:
    positionals = {"RUN": "a run directory, such as runs/tatoeba-small", "FORMAT": "ct2", "FOLDER": "a new folder"}
    arguments = parse_command_line(__doc__, positionals, add_options, ("decoding.",))
    if arguments.FORMAT != "ct2":
        raise UserError(f"there is no format {arguments.FORMAT}; choose ct2")
    if find_spec("ctranslate2") is None:
        raise UserError("the format ct2 needs CTranslate2: pip install ctranslate2")
    if any(override.startswith("decoding.ensemble=") for override in arguments.overrides):
        raise UserError("decoding.ensemble has no place in an export, which is one model")
    run = load_run(Path(arguments.RUN), [*arguments.overrides, *FLOAT32], "export.py")
    export_ctranslate2(run, Path(arguments.RUN), Path(arguments.FOLDER), arguments)


def add_options(parser: argparse.ArgumentParser) -> None:
    help = "the numbers of CTranslate2's weights (default: float32)"
    parser.add_argument("--quantization", choices=QUANTIZATIONS, default="float32", help=help)
    help = "held-out sentences to compare (default: 100)"
    parser.add_argument("--sentences", type=positive_integer, default=100, metavar="N", help=help)
    parser.add_argument("--no-check", action="store_true", help="compare nothing")


def export_ctranslate2(run: LoadedRun, run_dir: Path, folder: Path, arguments: argparse.Namespace) -> None:
    from exports.ctranslate2 import find_obstacle, save_model

    if obstacle := find_obstacle(run.config.model):
        raise UserError(f"{run_dir} cannot be exported to ct2: {obstacle}")
    tokenizer, quantization = run.translator.tokenizer, arguments.quantization
    with write_whole(folder) as new:
        save_model(new, run.config.model, run.params[0], tokenizer.vocabulary(), quantization)
        (new / MODEL_FILE).write_bytes(tokenizer.model)
        shutil.copyfile(PROGRAMS / "ctranslate2_translate.py", new / "translate.py")
        facts = facts_of(run, run_dir) | {"format": "ct2", "quantization": quantization}
        write_facts(new, facts)
        found = None if arguments.no_check else compare(run, run_dir, new, arguments.sentences)
        if found and quantization == "float32" and found.log_prob_difference > TOLERANCE:
            raise UserError(f"nothing is exported, because it is not the same model: {found.lines()[1]}")
        write_facts(new, facts | {"check": found and asdict(found)})
        describe_folder(new, run, run_dir, quantization, found)
    print(f"written  {folder}: {run_dir} at step {run.step}, for CTranslate2 ({quantization})")
    print("\n".join(found.lines() if found else ["not compared with the run"]))


def facts_of(run: LoadedRun, run_dir: Path) -> dict[str, Any]:
    """What the program in the folder reads, and where the model is from."""
    translator, config = run.translator, run.config
    return {
        "run": str(run_dir),
        "step": run.step,
        "checkpoint": config.decoding.checkpoint,
        "source": config.data.source,
        "target": config.data.target,
        "tag": [translator.tokenizer.vocabulary()[token] for token in translator.tag],
        "search": settings_of(config.decoding),
        "model": asdict(config.model),
    }


def write_facts(folder: Path, facts: dict[str, Any]) -> None:
    (folder / "export.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def compare(run: LoadedRun, run_dir: Path, folder: Path, sentences: int) -> Check:
    """Ask the other library about the first sentences of the test set that the run translates in one piece."""
    pairs, _ = load_held_out(run.config.data, "test", run_dir)
    sources = list(dict.fromkeys(pairs.sources))
    whole = [source for source in sources if len(run.translator.pieces(source)) == 1]
    translator: Translator = replace(run.translator, decoding=plain(run.config.decoding))
    return check(PROGRAMS / "ctranslate2_check.py", folder, translator, run.params[:1], whole[:sentences])


def describe_folder(folder: Path, run: LoadedRun, run_dir: Path, quantization: str, found: Check | None) -> None:
    report = find_own_report(run_dir)
    config, scores = run.config, [read_json_object(report)] if report else []
    facts = {
        "name": run_dir.resolve().name,
        "source": config.data.source,
        "target": config.data.target,
        "quantization": quantization,
        "scores": describe_scores(scores),
        "example": "Thank you." if config.data.source == "en" else "Gracias.",
        "search": describe(config.decoding),
        "longest": str(run.translator.longest),
        "check": "\n".join(found.lines()) if found else "Not compared with the run.",
    }
    write_readme(folder / "README.md", facts)


if __name__ == "__main__":
    main()
