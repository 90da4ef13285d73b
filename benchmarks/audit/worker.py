"""One process of an audit: python -m benchmarks.audit.worker compiled|reference FOLDER CONFIG [key=value …].

It writes the arrays of every part to FOLDER/NUMBER.npz and, where they were compiled, names, tolerances and
digests to FOLDER/parts.json. A process of its own, because flags of the compiler are read once.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

from benchmarks.audit.compare import compute, expect
from configs.load import load_config


def main(mode: str, folder: Path, config_file: str, *overrides: str) -> None:
    jax.config.update("jax_enable_compilation_cache", False)  # what compiles here and now is to be tried
    config, parts = load_config(config_file, overrides), []
    if mode == "compiled":
        for number, (part, computed) in enumerate(compute(config)):
            np.savez(folder / f"{number}.npz", allow_pickle=False, **computed.figures)
            parts.append({"name": part.name, "tolerance": part.tolerance, "digests": computed.digests})
            print(part.name, file=sys.stderr, flush=True)
        (folder / "parts.json").write_text(json.dumps(parts), encoding="utf-8")
    else:
        for number, (_, figures) in enumerate(expect(config)):
            np.savez(folder / f"{number}.npz", allow_pickle=False, **figures)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
