"""Look inside a trained model: python scripts/plot_attention.py RUN "A sentence to translate." [key=value …].

Translates the sentence and shows the attention weights of every layer and head for that translation, in encoder-decoder
attention, encoder self-attention and decoder self-attention. The files are written to RUN/attention, or to the folder
of --output, under a NAME made from the sentence:

  NAME.html   one page for a browser: click a head to enlarge it, point at a cell to read its weight
  NAME.npz    the weights: numpy.load("NAME.npz")["encoder"][layer, head, query, key], likewise decoder and
              encoder_decoder; the tokens of queries and keys are source_tokens, target_labels and target_inputs
"""

import sys
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import add_output, offer_output, parse_command_line
from common.errors import exit_on_user_error
from common.files import write_atomically
from evaluation.attention_view.sentence import MOST_TOKENS, ONE_SEARCH, render_files, translate_and_attend
from experiment.load_run import MAY_CHANGE, load_run
from training.run.layout import ATTENTION

ACCEPTED = MAY_CHANGE - {change.partition("=")[0] for change in ONE_SEARCH}


@exit_on_user_error()
def main() -> None:
    """Find all mistakes before writing anything, and print the translation even if the files cannot be written."""
    sentence_help = f"the sentence to translate, in quotes; at most {MOST_TOKENS} tokens"
    positionals = {"RUN": "a run directory, such as runs/tatoeba-small", "SENTENCE": sentence_help}
    add_options = partial(add_output, default="RUN/attention")
    arguments = parse_command_line(__doc__, positionals, add_options, ACCEPTED)
    run_dir = Path(arguments.RUN)
    run = load_run(run_dir, [*arguments.overrides, *ONE_SEARCH], "looking at it")
    attended = translate_and_attend(run.translator, run.params[0], arguments.SENTENCE)
    files = render_files(attended, str(run_dir))
    folder = arguments.output or run_dir / ATTENTION
    try:
        with offer_output(folder):
            for name, content in files.items():
                write_atomically(folder / name, content)
    finally:
        print(attended.translation, flush=True)
    print(*(folder / name for name in files), sep="\n")


if __name__ == "__main__":
    main()
