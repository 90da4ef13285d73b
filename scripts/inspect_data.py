"""Show what training would see of a corpus: python scripts/inspect_data.py configs/NAME.yaml [key=value …].

Prints a data card: where the pairs come from and why some are dropped, sentences that splits share, lengths, how the
tokenizer spells each side, how full the packed rows are, and some pairs. The card is also written as data_card.md, with
two pictures, to data_card/ in the run's directory. Trains nothing but the tokenizer, unless the run has one.
"""

from pathlib import Path

from cli.command_line import parse_command_line
from common.errors import UserError, exit_on_user_error, write_note
from common.files import write_atomically
from common.text_table import as_markdown, as_text
from configs.schema import RunConfig
from data.card.pictures import draw_batch, draw_lengths, png
from data.card.tables import build_card, build_tables
from data.tokens.tokenizer import tokenizer_key
from experiment.load_experiment import load_experiment
from training.run.corpus import prepare_for_run

PICTURES = """## Pictures

![Tokens per sentence in each split, and source against target in training](lengths.png)

![The first training batch: sentence pairs packed into rows](batch.png)
"""


def main() -> None:
    arguments = parse_command_line(__doc__, {"CONFIG": "a config file, such as configs/tatoeba-small.yaml"})
    with exit_on_user_error():
        config = load_experiment("scripts/inspect_data.py", arguments.CONFIG, arguments.overrides)
        inspect_data(config, " ".join([arguments.CONFIG, *arguments.overrides]))


def inspect_data(config: RunConfig, experiment: str) -> None:
    """Print the card, write it with its pictures, and print where they are."""
    run_dir = Path(config.run_dir)
    prepared = prepare_for_run(run_dir, config.data, config.tokenizer, config.training.seed)
    if prepared.tokenizer.key != tokenizer_key(prepared.corpus.training, config.tokenizer, config.data.tags):
        raise UserError(
            f"{run_dir} has checkpoints with a tokenizer of other text: training pairs or tokenizer.* changed since; "
            "undo that, or set run_dir=NEW_FOLDER"
        )
    for line in prepared.corpus.warnings:
        write_note(f"warning: {line}")
    card = build_card(config.data, config.tokenizer, prepared)
    tables = build_tables(card)
    print("\n\n".join([f"Data card of {experiment}", *map(as_text, tables)]) + "\n")
    markdown = "\n\n".join([f"# Data card\n\n    {experiment}", *map(as_markdown, tables), PICTURES])
    lengths = {split: (source.tokens.length, target.tokens.length) for split, (source, target) in card.texts.items()}
    batch = prepared.stream.batch(0)
    files = {
        "data_card.md": markdown.encode(),
        "lengths.png": png(draw_lengths(f"{run_dir.name}: lengths in tokens", card.languages, lengths)),
        "batch.png": png(
            draw_batch(f"{run_dir.name}: the first training batch", card.languages, batch, prepared.tokenizer.pieces)
        ),
    }
    for name, content in files.items():
        file = run_dir / "data_card" / name
        write_atomically(file, content)
        print(f"written  {file}")


if __name__ == "__main__":
    main()
