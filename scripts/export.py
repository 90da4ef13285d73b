"""Export a trained run to another library: python scripts/export.py RUN FORMAT FOLDER [key=value …].

  ct2  CTranslate2, which translates in C++ on CPUs and NVIDIA's GPUs: --quantization int8 makes it small and fast
  hf   Hugging Face's transformers, as a Pegasus (model.norm=pre) or a Marian (post), with a model card

FOLDER is written completely or not at all. It has the model, the tokenizer, a program that translates without this
project, and a README with the search settings that give the run's translations. A separate process then loads it with
the other library, and compares log-probabilities and translations of held-out sentences with the run's.
decoding.checkpoint=NAME exports another checkpoint or an average; for a run with both directions, data.source and
data.target choose one.
"""

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from cli.command_line import parse_command_line, positive_integer
from common.errors import UserError, exit_on_user_error
from common.files import read_json_object, write_folder, write_json
from configs.load import load_run_config
from evaluation.translate import Translator
from experiment.load_run import MAY_CHANGE, PRECISION, LoadedRun, load_run
from experiment.reports import place_report
from exports.check import Check, check
from exports.formats import FORMATS, SEARCH, find_obstacle, missing_packages, plain, save_model
from exports.heads import longest
from exports.readme import describe_data, describe_scores, describe_search, write_readme
from training.run.corpus import load_held_out

QUANTIZATIONS = ("float32", "float16", "int16", "int8", "int8_float32", "int8_float16")  # these do not need PyTorch
FLOAT32 = ["model.dtype=float32", "model.matmul_dtype=float32"]
EXAMPLES = {"en": "Thank you.", "es": "Gracias."}
TOLERANCE = 1e-4  # nats per token, for an export in float32


@exit_on_user_error()
def main() -> None:
    run_help = "a run directory, such as runs/quickstart"
    positionals = {"RUN": run_help, "FORMAT": "ct2 or hf", "FOLDER": "a new folder"}
    arguments = parse_command_line(__doc__, positionals, add_options, MAY_CHANGE - PRECISION)
    require_sense(arguments)
    run_dir, form = Path(arguments.RUN), arguments.FORMAT
    if obstacle := find_obstacle(form, load_run_config(run_dir).model):
        raise UserError(f"{run_dir} cannot be exported to {form}: {obstacle}")
    run = load_run(run_dir, [*arguments.overrides, *FLOAT32], "export.py")
    found = export(run, arguments)
    kind = f"ct2 ({arguments.quantization})" if form == "ct2" else form
    print(f"written  {arguments.FOLDER}: {run_dir} at step {run.manifest.step}, as {kind}")
    missing = missing_packages(FORMATS[form].checking)
    unchecked = f"not compared with the run{f', which needs pip install {missing}' if missing else ''}"
    print("\n".join(found.lines() if found else [unchecked]))


def add_options(parser: argparse.ArgumentParser) -> None:
    help = "number type of CTranslate2's weights (default: float32)"
    parser.add_argument("--quantization", choices=QUANTIZATIONS, default="float32", help=help)
    help = "number of held-out sentences to compare (default: 100)"
    parser.add_argument("--sentences", type=positive_integer, default=100, metavar="N", help=help)
    parser.add_argument("--no-check", action="store_true", help="compare nothing")
    help = "the licence to name in the README, such as cc-by-2.0; the training data determines which are possible"
    parser.add_argument("--license", metavar="NAME", default="", help=help)


def require_sense(arguments: argparse.Namespace) -> None:
    """UserError for mistakes that can be found before anything is loaded."""
    form = arguments.FORMAT
    if form not in FORMATS:
        raise UserError(f"there is no format {form}; choose ct2 or hf")
    if missing := missing_packages(FORMATS[form].writing):
        raise UserError(f"the format {form} needs more: pip install {missing}")
    if arguments.quantization != "float32" and form != "ct2":
        raise UserError(f"--quantization={arguments.quantization} is for the format ct2")
    if any(override.startswith("decoding.ensemble=") for override in arguments.overrides):
        raise UserError("an export is one model: leave out decoding.ensemble")


def export(run: LoadedRun, arguments: argparse.Namespace) -> Check | None:
    """Write the folder, and return what the check found; None if no check is wanted or possible."""
    form, quantization = arguments.FORMAT, arguments.quantization
    can_check = not arguments.no_check and not missing_packages(FORMATS[form].checking)
    with write_folder(Path(arguments.FOLDER)) as new:
        save_model(form, new, run.translator, run.params[0], quantization)
        sizes = dict.fromkeys(("longest_source", "longest_target"), longest(run.config.model))
        facts = facts_of(run, sizes["longest_source"]) | {"format": form, "quantization": quantization} | sizes
        write_json(new / "export.json", facts)
        found = check_export(run, new, arguments.sentences, sizes["longest_source"]) if can_check else None
        if found and quantization == "float32" and found.log_prob_difference > TOLERANCE:
            raise UserError(f"nothing was exported, because the export is not the same model: {found.lines()[1]}")
        write_json(new / "export.json", facts | {"check": found and asdict(found)})
        describe_folder(new, run, arguments, facts, found)
    return found


def facts_of(run: LoadedRun, longest_source: int) -> dict[str, Any]:
    """The settings that the program in the folder reads, and where the model comes from."""
    vocabulary, splitting = run.translator.tokenizer.vocabulary(), translator_of(run, longest_source)
    return {
        "run": run.folder.resolve().name,
        "step": run.manifest.step,
        "checkpoint": run.config.decoding.checkpoint,
        "source": run.config.data.source,
        "target": run.config.data.target,
        "tag": [vocabulary[token] for token in run.translator.tag],
        "search": {key: vars(run.config.decoding)[key] for key in SEARCH},
        "lines": {"usual": asdict(splitting.usual), "max_source_tokens": splitting.decoding.max_source_tokens},
        "model": asdict(run.config.model),
    }


def translator_of(run: LoadedRun, longest_source: int) -> Translator:
    """The run's translator, without the features that the program lacks or sources too long for the format."""
    translator, decoding = run.translator, plain(run.config.decoding)
    decoding = replace(decoding, max_source_tokens=min(decoding.max_source_tokens, longest_source))
    usual = replace(translator.usual, tokens=min(translator.usual.tokens, longest_source))
    return replace(translator, decoding=decoding, usual=usual)


def check_export(run: LoadedRun, folder: Path, sentences: int, longest_source: int) -> Check | None:
    """Check the export on the first test sentences that both translate in one piece; None if there are none."""
    pairs, _ = load_held_out(run.config.data, "test", run.folder)
    translator = translator_of(run, longest_source)
    translator = replace(translator, usual=replace(translator.usual, sentences=1))
    whole = [source for source in dict.fromkeys(pairs.sources) if len(translator.pieces(source)) == 1]
    if not whole:
        return None
    with jax.default_matmul_precision("float32"):  # not a GPU's TF32
        return check(folder, translator, run.params[:1], whole[:sentences])


def describe_lines(usual: dict[str, int], max_source_tokens: int) -> str:
    """How lines are split, for the README."""
    if max_source_tokens:
        return f"of more than {max_source_tokens} tokens, `</s>` included, is cut at sentence ends"
    most = "one sentence" if usual["sentences"] == 1 else f"{usual['sentences']} sentences"
    return f"of more than {most} or {usual['tokens']} tokens, `</s>` included, is translated sentence by sentence"


def describe_folder(
    folder: Path, run: LoadedRun, arguments: argparse.Namespace, facts: dict[str, Any], found: Check | None
) -> None:
    """Write the README."""
    as_trained = load_run(run.folder, arguments.overrides, "export.py")  # in its own precision
    report, source = place_report(as_trained).find(), facts["source"]
    example = EXAMPLES.get(source, f"A sentence in {source}.")
    words = {
        "name": facts["run"],
        "example": example,
        "tagged": f">>{facts['target']}<<{example}" if run.translator.tag else example,  # for AutoTokenizer
        "license_id": arguments.license or "other",
        "license": arguments.license or "not stated; the licence of the training data also binds this model",
        "data": describe_data(run.folder),
        "scores": describe_scores(read_json_object(report) if report else None),
        "longest": describe_lines(**facts["lines"]),
        "check": "\n".join(found.lines()) if found else "Not compared with the run.",
    }
    write_readme(folder, arguments.FORMAT, facts | words | describe_search(run.config.decoding))


if __name__ == "__main__":
    main()
