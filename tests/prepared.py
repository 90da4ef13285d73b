"""A corpus prepared and written down, as train.py does before its first step."""

from pathlib import Path
from typing import Any

from data.prepare import Prepared, prepare


def prepare_and_save(config: Any, tokenizer_config: Any, seed: int, run_dir: Path, **options: Any) -> Prepared:
    prepared = prepare(config, tokenizer_config, seed, run_dir, **options)
    prepared.save(run_dir)
    return prepared
