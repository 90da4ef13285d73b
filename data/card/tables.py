"""The numbers of a data card as tables."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

import numpy as np
from jaxtyping import Int

from common.files import sha256
from common.special_tokens import EOS
from common.text import in_brief
from common.text_table import Table
from data.card.numbers import (
    Card,
    Text,
    byte_pieces,
    count_pieces,
    epoch_shares,
    find_unseen_words,
    length_histogram,
    length_ratios,
    measure_packing,
    measure_spelling,
    sample_pairs,
    select_fitting,
    summarise_lengths,
)
from data.pairs import Pairs
from data.report import Dropped
from data.tokenizer import Tokenizer

SAMPLES = 8  # pairs in all; one of each source if there are more sources
BINS, BAR = 12, 30  # bins of the histogram, and characters of its longest bar
OFTEN = 100  # occurrences that suffice to learn a piece (https://arxiv.org/abs/2004.02334)


def build_tables(card: Card) -> list[Table]:
    fitting = select_fitting(card.corpus.sources, card.stream)
    counts = [count_pieces(text, card.tokenizer.vocab_size) for _, _, text in sides(card)]
    return [
        sources_table(card, [len(pairs) for pairs in fitting]),
        overlap_table(card),
        sentences_table(card),
        lengths_table(card),
        histogram_table(card),
        tokenizer_table(card, counts[0] + counts[1]),
        spelling_table(card, counts),
        packing_table(card),
        samples_table(card, fitting),
    ]


def sources_table(card: Card, fitting: list[int]) -> Table:
    """Every source and what became of its rows; ``fitting`` counts the pairs of each that fit a row."""
    config, files = card.config, card.corpus.files
    shares = epoch_shares(fitting, [account.weight for account in files.train])
    rows = []
    for name, account, pairs, share in zip(config.train, files.train, fitting, shares, strict=True):
        dropped = format_dropped(account.dropped() + Dropped(over_long=account.pairs - pairs))
        counts = [f"{account.rows:,}", dropped, f"{pairs:,}", f"{account.weight:g}", f"{share:.1%}"]
        rows.append(["train", name, *counts, account.sha256[:12]])
    for split, name, report in (("valid", config.valid, files.valid), ("test", config.test, files.test)):
        dropped, pairs = format_dropped(Dropped(malformed=report.malformed)), len(card.texts[split][0].sentences)
        counts = [f"{report.rows:,}", dropped, f"{pairs:,}", "", ""]
        # A set that the run has not written yet has no digest.
        rows.append([split, name or "taken out of train", *counts, report.sha256[:12] or "–"])
    header = ["split", "source", "rows", "dropped", "pairs", "weight", "of an epoch", "SHA-256"]
    return Table("Sources", f"data.root={config.root}; an epoch has weight × pairs of each source.", header, rows)


def format_dropped(dropped: Dropped) -> str:
    """The counts above 0, each with its reason."""
    return ", ".join(f"{count:,} {reason}" for reason, count in asdict(dropped).items() if count) or "none"


def overlap_table(card: Card) -> Table:
    header = ["splits", *(f"shared {language}" for language in languages(card)), "such as"]
    rows = []
    for splits, shared in card.corpus.overlap.items():
        examples = [*shared.source.examples, *shared.target.examples, ""]
        rows.append([splits, f"{shared.source.shared:,}", f"{shared.target.shared:,}", in_brief(examples[0])])
    return Table("Leak audit", "Distinct sentences that two splits share, case and punctuation ignored.", header, rows)


def sentences_table(card: Card) -> Table:
    """Pairs and distinct sentences of each split, and the ratio of the sides' lengths."""
    source, target = languages(card)
    rows = []
    for split, (sources, targets) in card.texts.items():
        pairs = len(sources.sentences)
        counts = [f"{count:,}" for count in (pairs, sources.distinct(), targets.distinct())]
        ratios = [f"{ratio:.2f}" for ratio in length_ratios(sources.characters, targets.characters)]
        rows.append([split, *counts, f"{pairs / sources.distinct():.3f}", *ratios])
    note = f"Ratio: characters on the {target} side by those on the {source} side; 5th, 50th and 95th percentile."
    header = ["split", "pairs", f"distinct {source}", f"distinct {target}", "references per source"]
    return Table("Sentences", note, [*header, "ratio 5 %", "50 %", "95 %"], rows)


def lengths_table(card: Card) -> Table:
    """Characters, words and tokens per sentence, for each side of each split."""
    rows = []
    for unit in ("characters", "words", "tokens"):
        for split, language, text in sides(card):
            values = {"characters": text.characters, "words": text.words, "tokens": text.tokens.length}[unit]
            lengths = summarise_lengths(values)
            row = [unit, split, language, f"{lengths.mean:.1f}", f"{lengths.median:,}", f"{lengths.percentile_95:,}"]
            rows.append([*row, f"{lengths.longest:,}"])
    note = "Of a sentence. Words are runs of letters and digits; tokens count EOS, as a packed row does."
    return Table("Lengths", note, ["counted", "split", "side", "mean", "median", "95 %", "longest"], rows)


def histogram_table(card: Card) -> Table:
    """How many training sentences of each side have which length in tokens."""
    lengths = [text.tokens.length for text in card.texts["train"]]
    width = max(1, -(-int(np.quantile(np.concatenate(lengths), 0.999)) // BINS))
    shares = np.stack([length_histogram(values, width, BINS) for values in lengths], axis=1)
    rows = []
    for bin_, pair in enumerate(shares):
        first, last = bin_ * width + 1, (bin_ + 1) * width
        name = f"{first} and more" if bin_ == BINS - 1 else f"{first} to {last}" if first < last else str(first)
        cells = ((f"{share:.1%}", "█" * round(BAR * share / shares.max())) for share in pair)
        rows.append([name, *chain.from_iterable(cells)])
    source, target = languages(card)
    return Table("Training sentences by length", "", ["tokens", source, "", target, ""], rows)


def tokenizer_table(card: Card, counts: Int[np.ndarray, " V"]) -> Table:
    """The vocabulary and the share of it that training uses."""
    spelled = ~byte_pieces(card.tokenizer)
    spelled[: EOS + 1] = False  # the special pieces come first
    used, often = int((counts[spelled] > 0).sum()), int((counts[spelled] >= OFTEN).sum())
    rows = [
        ["type", card.tokenizer_config.type],
        ["pieces", f"{card.tokenizer.vocab_size:,}: {spelled.sum():,} of text, 256 bytes and 4 special ones"],
        ["used in training", f"{used:,} of the pieces of text ({used / spelled.sum():.1%})"],
        [f"at least {OFTEN} times", f"{often:,} ({often / spelled.sum():.1%})"],
        ["SHA-256", sha256(card.tokenizer.model)[:12]],
    ]
    note = f"Gowda and May (2020) advise the largest vocabulary that has 95 % of its pieces at least {OFTEN} times."
    return Table("Tokenizer", note, ["", ""], rows)


def spelling_table(card: Card, counts: list[Int[np.ndarray, " V"]]) -> Table:
    """How the tokenizer spells each side of each split, and which of its words training lacks."""
    is_byte = byte_pieces(card.tokenizer)
    rows = []
    for (split, language, text), pieces in zip(sides(card), counts, strict=True):
        spelling = [f"{share:.3%}" for share in measure_spelling(pieces, is_byte)]
        row = [split, language, f"{text.tokens_per_word():.2f}", *spelling]
        row += [f"{text.word_counts.total():,}", f"{len(text.word_counts):,}"]
        rows.append([*row, *unseen_words(card, split, language, text)])
    header = ["split", "side", "tokens per word", "bytes", "unknown", "words", "distinct", "unseen", "such as"]
    note = "Tokens per word: without EOS. Bytes and unknown: of the tokens. Unseen: of the words, not in training."
    return Table("Spelling and coverage", note, header, rows)


def unseen_words(card: Card, split: str, language: str, text: Text) -> list[str]:
    """Two cells: the share of unseen words and the most frequent of them."""
    if split == "train":
        return ["–", ""]
    training = card.texts["train"][languages(card).index(language)]
    unseen = find_unseen_words(training.word_counts, text.word_counts)
    return [f"{unseen.share:.2%}", ", ".join(map(in_brief, unseen.words[:4]))]


def packing_table(card: Card) -> Table:
    """An epoch as the model sees it."""
    packing, stream = measure_packing(card.stream), card.stream
    per_step = packing.real[1] / packing.steps
    rows = [
        ["row", f"{stream.row_lengths[0]} source + {stream.row_lengths[1]} target tokens"],
        ["batch", f"{card.config.batch_rows} rows, on average {per_step:,.0f} real target tokens"],
        ["epoch", f"{packing.pairs:,} pairs in {packing.rows:,} rows ({packing.pairs / packing.rows:.2f} per row)"],
        ["steps per epoch", f"{packing.steps:,}"],
        ["fill", both(card, packing.fill())],
        ["fill, one pair per row", both(card, packing.fill_of_single_pairs())],
        ["fingerprint", stream.fingerprint[:12]],
    ]
    sampling = card.config.subword_sampling
    note = f"Its subwords are drawn at random (data.subword_sampling={sampling:g}); elsewhere the likeliest count."
    return Table("Packing", note if sampling else "", ["", ""], rows)


def samples_table(card: Card, fitting: list[Pairs]) -> Table:
    """Pairs of every source from short to long; two of them with their pieces."""
    per_source = -(-SAMPLES // len(fitting))
    samples = zip(card.config.train, (sample_pairs(pairs, per_source) for pairs in fitting), strict=True)
    chosen = [(name, pair) for name, pairs in samples for pair in pairs]
    rows = []
    for number, (name, pair) in enumerate(chosen):
        for first, language, sentence in zip((name, ""), languages(card), pair, strict=True):
            rows.append([first, language, sentence])
            if number in (len(chosen) // 3, 2 * len(chosen) // 3):
                rows.append(["", "pieces", spell(card.tokenizer, sentence)])
    return Table("Sample pairs", "From short to long.", ["from", "side", "sentence"], rows)


def spell(tokenizer: Tokenizer, sentence: str) -> str:
    return " ".join(tokenizer.pieces(tokenizer.encode([sentence])[0]))


def languages(card: Card) -> tuple[str, str]:
    return card.config.source, card.config.target


def sides(card: Card) -> Iterator[tuple[str, str, Text]]:
    """Split, language and text of both sides of each split, training first."""
    for split, texts in card.texts.items():
        for language, text in zip(languages(card), texts, strict=True):
            yield split, language, text


def both(card: Card, shares: tuple[float, float]) -> str:
    return ", ".join(f"{share:.1%} {language}" for language, share in zip(languages(card), shares, strict=True))
