"""Show a corpus as training would see it: python scripts/inspect_data.py configs/NAME.yaml [key=value …].

Prints a data card: where the pairs come from and why some are dropped, sentences that splits share, lengths, how the
tokenizer splits each side, how full the packed rows are, some pairs, and how close held-out sets are to training. The
card is also written to data_card.md in the run's directory. Trains only a tokenizer, unless the run already has one.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from cli.command_line import parse_command_line, write_and_print
from common.errors import exit_on_user_error, write_note
from common.text_table import as_markdown, as_text
from configs.schema import RunConfig
from data.card import build_card, build_tables
from evaluation.neighbours import neighbours_table
from experiment.load_run import MOST_PAIRS, load_experiment
from training.run.corpus import prepare_for_run


@exit_on_user_error()
def main() -> None:
    arguments = parse_command_line(__doc__, {"CONFIG": "a config file, such as configs/tatoeba-small.yaml"})
    config = load_experiment("scripts/inspect_data.py", arguments.CONFIG, arguments.overrides)
    inspect_data(config, " ".join([arguments.CONFIG, *arguments.overrides]))


def inspect_data(config: RunConfig, experiment: str) -> None:
    """Write the card to the run's directory, and print it even if that fails."""
    run_dir = Path(config.run_dir)
    prepared = prepare_for_run(run_dir, config.data, config.tokenizer, config.training.seed)
    for line in prepared.corpus.warnings:
        write_note(f"warning: {line}")
    held_out = {"valid": prepared.corpus.valid, "test": prepared.corpus.test}
    tables = build_tables(build_card(config.data, config.tokenizer, prepared))
    if len(prepared.corpus.training) <= MOST_PAIRS:
        tables.append(neighbours_table(held_out, prepared.corpus.training))
    file = run_dir / "data_card.md"
    card = "\n\n".join([f"# Data card\n\n    {experiment}", *map(as_markdown, tables)]) + "\n"
    write_and_print(file, card, "\n\n".join([f"Data card of {experiment}", *map(as_text, tables)]))


if __name__ == "__main__":
    main()
