"""Check this machine's numerics against references: python scripts/check_numbers.py CONFIG [key=value …].

A compiler can be wrong for one shape and right for all others. This script therefore computes every part of the config
at its real shapes, with random numbers: each kernel in each use of attention, the product with each matrix of a dense
layer, the loss in chunks, the share that dropout drops, the optimizer, the gradients of a batch by module, two training
steps and the search. It compares the compiled results with the definition in float64 NumPy or, for whole steps, with
JAX without jit on the CPU, which compiles operations one by one and in another way. Results must also be bitwise equal
when repeated in the same process and in another one; on a GPU, this is checked only with
XLA_FLAGS=--xla_gpu_deterministic_ops=true. It needs no corpus and no training.

The exit code is 1 if anything is wrong. The result is kept for this combination of jaxlib, processor and compiler
flags; train.py prints a note at its start if there is none.

example: python scripts/check_numbers.py configs/tatoeba-small.yaml
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from benchmarks.audit.compare import as_table
from benchmarks.audit.processes import audit
from cli.command_line import parse_command_line
from common.errors import exit_on_user_error
from common.text_table import as_text
from configs.load import load_config
from training.devices.compiler import describe_compiler, keep_verdict


def main() -> None:
    arguments = parse_command_line(__doc__, {"CONFIG": "a config file, such as configs/tatoeba-small.yaml"})
    with exit_on_user_error():
        load_config(arguments.CONFIG, arguments.overrides)  # so that a mistake in it ends the program now
        findings = audit(arguments.CONFIG, arguments.overrides)
        wrong = [finding.part for finding in findings if not finding.is_right]
        print(as_text(as_table(f"{arguments.CONFIG}, {describe_compiler()}", findings)))
        keep_verdict(wrong)
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()
