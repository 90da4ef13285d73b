"""Check what is computed here against references: python scripts/check_numbers.py CONFIG [key=value …].

A compiler can be wrong for one shape and right for all others. So every part of the config is computed at its real
shapes, with random numbers: each kernel in each use of attention, the product with each matrix of a dense layer, the
loss in chunks, dropout's share, the optimizer, the gradients of a batch by module, two training steps and the search.
What is compiled is compared with the definition in float64 NumPy or, for whole steps, with JAX without jit, whose
operations are compiled one by one and in another way, on the CPU. It must also have the same bits twice in one process
and in another process; on a GPU, only with XLA_FLAGS=--xla_gpu_deterministic_ops=true. No corpus is read, and no
training is needed.

The exit code is 1 if anything is wrong. The result is kept for this jaxlib, processor and flags of the compiler, and
train.py says at its start if there is none.

example: python scripts/check_numbers.py configs/tatoeba-small.yaml
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone, whatever PYTHONPATH says
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
        load_config(arguments.CONFIG, arguments.overrides)  # a mistake in it ends the program now
        findings = audit(arguments.CONFIG, arguments.overrides)
        wrong = [finding.part for finding in findings if not finding.is_right]
        print(as_text(as_table(f"{arguments.CONFIG}, {describe_compiler()}", findings)))
        keep_verdict(wrong)
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()
