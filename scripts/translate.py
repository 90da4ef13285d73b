"""Translate standard input to standard output, a line for a line: python scripts/translate.py RUN [key=value …]."""

import dataclasses
import signal
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from configs.command_line import command_line
from configs.load import differences, load_run_config
from data.errors import UserError, exit_on_user_error
from data.tokenizer import load_tokenizer
from evaluation.translate import Translator
from training.checkpoint import load_for_inference

BLOCK = 512  # lines read, translated and written together: memory does not grow with the input


def main() -> None:
    run_dir, overrides = command_line(__doc__ or "", "RUN", "a run directory, such as runs/tatoeba-small")
    for name in (signal.SIGINT, signal.SIGPIPE):  # Ctrl-C and a closed pipe end this as quietly as any filter
        signal.signal(name, signal.SIG_DFL)
    with exit_on_user_error():
        translate_lines(Path(run_dir), overrides)


def translate_lines(run_dir: Path, overrides: list[str]) -> None:
    """Translate in blocks, or each line at once for someone who is typing."""
    config = load_run_config(run_dir, overrides)
    for difference in differences(load_run_config(run_dir), config):
        if not difference.startswith(("decoding.", "model.dtype:", "model.matmul_dtype:")):
            raise UserError(f"{run_dir} is trained, so translating cannot change {difference}")
    typing = sys.stdin.isatty()
    decoding = dataclasses.replace(config.decoding, batch_sentences=1) if typing else config.decoding
    tokenizer = load_tokenizer(run_dir)
    params, _ = load_for_inference(run_dir, decoding.checkpoint, config.model, tokenizer.vocab_size)
    translator = Translator(config.model, tokenizer, decoding)
    lines = sentences(sys.stdin.buffer)
    while block := list(islice(lines, 1 if typing else BLOCK)):
        translations = translator.translate(params, block, progress=not typing)
        sys.stdout.buffer.write("".join(f"{line}\n" for line in translations).encode())
        sys.stdout.buffer.flush()


def sentences(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines of bytes, which end at line feeds only, as text; UserError names a line that is not UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"standard input:{number}: invalid UTF-8 at byte {error.start + 1} of the line") from None


if __name__ == "__main__":
    main()
