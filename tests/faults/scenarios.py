"""What faults strike: the programs, and what must be equal afterwards. Files are named from their working directory."""

from pathlib import Path

from common.files import files_below, read_json, sha256_of_file
from configs.schema import RunConfig
from evaluation.report import translations_beside
from tests.run_digest import digest_run, digest_tree
from training.run.checkpoint import load_params
from training.run.corpus import load_tokenizer
from training.run.layout import average_path, report_path

SCENARIOS = {  # EXPERIMENT is a config with changes, SWEEP the file of a sweep
    "train": "train.py EXPERIMENT run_dir=run",
    "sweep": "scripts/sweep.py SWEEP --jobs=1",
    "average": "scripts/average_checkpoints.py run --last=2",
    "export": "scripts/export.py run ct2 model",
    "eval": "eval.py run",
    "cache": "train.py EXPERIMENT run_dir=run",
}
BEGINS_WITH = {"train": ["cache"], "sweep": ["cache"], "cache": ["cache/puente/compiled*"]}  # others: also with run


def digest(scenario: str, folder: Path, config: RunConfig) -> dict[str, str]:
    """Digests, by name, of what a scenario's program must have left in its working directory."""
    run_dir = folder / "run"
    if scenario == "average":
        vocab_size = load_tokenizer(run_dir).vocab_size
        return {"": digest_tree(load_params(average_path(run_dir, "last-2"), config.model, vocab_size))}
    if scenario == "export":
        return {name: sha256_of_file(path) for name, path in files_below(folder / "model").items()}
    if scenario == "eval":
        scores, lines = read_json(report := report_path(run_dir, "test")), translations_beside(report)
        return {"scores": f"{scores['bleu']!r} {scores['chrf']!r}", "translations": sha256_of_file(lines)}
    digests = dict[str, str]()
    for each in (path.parent for path in folder.glob("**/checkpoints")):
        found = digest_run(each, config.model, config.training, load_tokenizer(each).vocab_size)
        digests |= {f"{each.name}: {name}": value for name, value in found.items()}
    return digests
