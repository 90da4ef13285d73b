"""One process of an audit: python -m benchmarks.audit.worker compiled|reference FOLDER CONFIG [key=value …].

It writes the arrays of every part to FOLDER/NUMBER.npz, and their names, tolerances and digests to FOLDER/parts.json.
Compiled parts are computed twice. This needs a separate process, because compiler flags are read only once.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

from benchmarks.audit.compare import digest, figures_of
from benchmarks.audit.parts import parts_of
from configs.load import load_config


def main(mode: str, folder: Path, config_file: str, *overrides: str) -> None:
    jax.config.update("jax_enable_compilation_cache", False)  # test the compiler itself, not cached programs
    if jax.default_backend() != "cpu":
        jax.config.update("jax_default_matmul_precision", "float32")  # TF32 rounds, which would hide errors
    config, facts, is_reference = load_config(config_file, overrides), [], mode == "reference"
    with jax.disable_jit(is_reference):  # so that parts without a reference run one JAX operation at a time
        for number, part in enumerate(parts_of(config)):
            compute = (part.reference if is_reference else None) or part.compute
            found = [figures_of(compute(*part.arguments)) for _ in range(1 if is_reference else 2)]
            np.savez(folder / f"{number}.npz", allow_pickle=False, **found[0])
            facts.append({"name": part.name, "tolerance": part.tolerance, "digests": list(map(digest, found))})
            print(part.name, file=sys.stderr, flush=True)
    (folder / "parts.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
