"""How a run will use its corpus, reported before it starts: its pairs and epochs, and whether these are too many."""

from pathlib import Path

from common.errors import write_note
from configs.schema import RunConfig
from data.batches.packing import Batch
from data.batches.stream import validation_batches
from data.corpus.report import DataReport
from data.prepare import Prepared
from experiment.initial import load_initial
from training.devices.preflight import check_position_table
from training.run.corpus import prepare_for_run
from training.schedule import Schedule

FEW_PAIRS, MANY_EPOCHS, LITTLE_DROPOUT = 20_000, 10, 0.2


def describe_plan(config: RunConfig) -> str:
    """Read the corpus as the run would and describe how long training takes; writes nothing but warnings."""
    run_dir, tokenizer = Path(config.run_dir), load_initial(config).tokenizer
    prepared = prepare_for_run(run_dir, config.data, config.tokenizer, config.training.seed, tokenizer)
    for line in filter(None, [*prepared.corpus.warnings, advise_small_corpus(config, prepared)]):
        write_note(f"warning: {line}")
    load_validation(config, prepared)
    steps, epoch = Schedule(config.training, prepared.stream).expected_end(0), prepared.stream.steps_in(0)
    corpus = f"corpus               {describe_corpus(prepared.report)}"
    return f"{corpus}\ntraining             {steps:,} steps; an epoch has {epoch:,}: {steps / epoch:.1f} epochs"


def load_validation(config: RunConfig, prepared: Prepared) -> list[Batch]:
    """The batches of the validation set. UserError for a pair too long for its rows, or for learned positions."""
    lengths = prepared.stream.row_lengths
    batches = validation_batches(prepared.corpus.valid, prepared.tokenizer, config.data, lengths)
    check_position_table(config.model, lengths, batches)
    return batches


def describe_corpus(report: DataReport) -> str:
    source = f"{report.row_lengths.source} ({report.fill.source:.1%} real)"
    target = f"{report.row_lengths.target} ({report.fill.target:.1%} real)"
    return f"{report.training_pairs:,} pairs (dropped: {report.dropped}) in rows of {source} + {target} tokens"


def advise_small_corpus(config: RunConfig, prepared: Prepared) -> str | None:
    """Advice if the model would overfit a small corpus; None for few epochs, strong dropout or early stopping."""
    pairs, dropout = prepared.report.training_pairs, config.model.dropout
    if pairs >= FEW_PAIRS or dropout >= LITTLE_DROPOUT or config.training.patience:
        return None
    epochs = Schedule(config.training, prepared.stream).expected_end(0) / prepared.stream.steps_in(0)
    if epochs < MANY_EPOCHS:
        return None
    danger = "the model will overfit them, and translate new sentences worse"
    advice = f"For fewer than {FEW_PAIRS:,} pairs, start with configs/small-corpus.yaml (docs/data.md)"
    return f"{epochs:.0f} epochs of {pairs:,} pairs with model.dropout={dropout}: {danger}. {advice}"
