"""The numbers of a data card as tables, for a terminal and as Markdown."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from jaxtyping import Int

from common.digests import sha256
from common.special_tokens import EOS
from common.text import in_brief
from common.text_table import Table
from data.assemble import REASONS, Account
from data.card.numbers import (
    Card,
    Text,
    byte_pieces,
    epoch_shares,
    lengths_of,
    packing_of,
    piece_counts,
    ratios_of,
    samples_of,
    shares_by_length,
    spelling_of,
    trained_on,
    unseen_in,
)
from data.pairs import Pairs
from data.tokenizer import Tokenizer

SAMPLES = 8  # pairs, or one of each source if there are more
BINS, BAR = 12, 30  # of the histogram: bins, and letters of the longest bar
OFTEN = 100  # times in training: enough to learn a piece, says https://arxiv.org/abs/2004.02334


def tables_of(card: Card) -> list[Table]:
    """The whole card."""
    trained = trained_on(card.corpus.sources, card.stream)
    counts = [piece_counts(text, card.tokenizer.vocab_size) for _, _, text in sides(card)]
    return [
        sources_table(card, [len(pairs) for pairs in trained]),
        overlap_table(card),
        sentences_table(card),
        lengths_table(card),
        histogram_table(card),
        tokenizer_table(card, counts[0] + counts[1]),
        spelling_table(card, counts),
        packing_table(card),
        samples_table(card, trained),
    ]


def sources_table(card: Card, trained: list[int]) -> Table:
    """Every source and what became of its rows; ``trained`` counts the pairs that are left of each."""
    config, accounts = card.config, card.corpus.accounts
    shares = epoch_shares(trained, [account["weight"] for account in accounts["train"]])
    rows = []
    for name, account, pairs, share in zip(config.train, accounts["train"], trained, shares, strict=True):
        reasons = {reason: account[reason] for reason in REASONS} | {"over_long": account["pairs"] - pairs}
        weight = [f"{account['weight']:g}", f"{share:.1%}"]
        rows.append(["train", name, f"{account['rows']:,}", in_words(reasons), f"{pairs:,}", *weight, sha_of(account)])
    for split, name in (("valid", config.valid), ("test", config.test)):
        [account], pairs = accounts[split], len(card.texts[split][0].sentences)
        reasons = {"malformed": account.get("malformed", 0)}
        row = [split, name or "taken out of train", f"{account['rows']:,}", in_words(reasons), f"{pairs:,}"]
        rows.append([*row, "", "", sha_of(account)])
    header = ["split", "source", "rows", "dropped", "pairs", "weight", "of an epoch", "SHA-256"]
    return Table("Sources", f"data.root={config.root}; an epoch has weight × pairs of each source.", header, rows)


def in_words(dropped: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count) or "none"


def sha_of(account: Account) -> str:
    """As many digits as tell files apart; a set that the run has not written yet has none."""
    return str(account.get("sha256", ""))[:12] or "–"


def overlap_table(card: Card) -> Table:
    """The leak audit."""
    header = ["splits", *(f"shared {language}" for language in languages(card)), "such as"]
    rows = []
    for splits, shared in card.corpus.overlap.items():
        examples = [*shared["source"]["examples"], *shared["target"]["examples"], ""]
        counts = [f"{shared[side]['shared']:,}" for side in ("source", "target")]
        rows.append([splits, *counts, in_brief(examples[0])])
    return Table("Leak audit", "Distinct sentences that two splits share, case and punctuation ignored.", header, rows)


def sentences_table(card: Card) -> Table:
    """Pairs and distinct sentences of each split, and how much longer a side is."""
    source, target = languages(card)
    rows = []
    for split, (sources, targets) in card.texts.items():
        pairs = len(sources.sentences)
        counts = [f"{count:,}" for count in (pairs, sources.distinct(), targets.distinct())]
        ratios = [f"{ratio:.2f}" for ratio in ratios_of(sources.characters, targets.characters)]
        rows.append([split, *counts, f"{pairs / sources.distinct():.3f}", *ratios])
    note = f"Ratio: characters on the {target} side by those on the {source} side; 5th, 50th and 95th percentile."
    header = ["split", "pairs", f"distinct {source}", f"distinct {target}", "references a source"]
    return Table("Sentences", note, [*header, "ratio 5 %", "50 %", "95 %"], rows)


def lengths_table(card: Card) -> Table:
    """Characters, words and tokens of a sentence, for each side of each split."""
    rows = []
    for unit in ("characters", "words", "tokens"):
        for split, language, text in sides(card):
            values = {"characters": text.characters, "words": text.words, "tokens": text.tokens.length}[unit]
            lengths = lengths_of(values)
            row = [unit, split, language, f"{lengths.mean:.1f}", f"{lengths.median:,}", f"{lengths.percentile_95:,}"]
            rows.append([*row, f"{lengths.longest:,}"])
    note = "Of a sentence. Words are runs of letters and digits; tokens count EOS, as a packed row does."
    return Table("Lengths", note, ["counted", "split", "side", "mean", "median", "95 %", "longest"], rows)


def histogram_table(card: Card) -> Table:
    """How the training sentences of both sides spread over lengths in tokens."""
    lengths = [text.tokens.length for text in card.texts["train"]]
    width = max(1, -(-int(np.quantile(np.concatenate(lengths), 0.999)) // BINS))
    shares = np.stack([shares_by_length(values, width, BINS) for values in lengths], axis=1)
    rows = []
    for bin_, pair in enumerate(shares):
        first, last = bin_ * width + 1, (bin_ + 1) * width
        name = f"{first} and more" if bin_ == BINS - 1 else f"{first} to {last}" if first < last else str(first)
        cells = ((f"{share:.1%}", "█" * round(BAR * share / shares.max())) for share in pair)
        rows.append([name, *chain.from_iterable(cells)])
    source, target = languages(card)
    return Table("Training sentences by length", "", ["tokens", source, "", target, ""], rows)


def tokenizer_table(card: Card, counts: Int[np.ndarray, " V"]) -> Table:
    """The vocabulary, and how much of it training uses."""
    spelled = ~byte_pieces(card.tokenizer)
    spelled[: EOS + 1] = False  # the special ones come first
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
    """How the tokenizer fares with each side of each split, and which words training never shows on that side."""
    is_byte = byte_pieces(card.tokenizer)
    rows = []
    for (split, language, text), pieces in zip(sides(card), counts, strict=True):
        spelling = [f"{share:.3%}" for share in spelling_of(pieces, is_byte)]
        row = [split, language, f"{text.tokens_per_word():.2f}", *spelling]
        row += [f"{text.vocabulary.total():,}", f"{len(text.vocabulary):,}"]
        rows.append([*row, *unseen_words(card, split, language, text)])
    header = ["split", "side", "tokens a word", "bytes", "unknown", "words", "distinct", "never in training", "such as"]
    note = (
        "Tokens a word: punctuation counts, EOS does not. Bytes and unknown: of the tokens. "
        "Never in training: of the words."
    )
    return Table("Spelling and coverage", note, header, rows)


def unseen_words(card: Card, split: str, language: str, text: Text) -> list[str]:
    """Two cells: the share, and the most frequent ones."""
    if split == "train":
        return ["–", ""]
    training = card.texts["train"][languages(card).index(language)]
    unseen = unseen_in(training.vocabulary, text.vocabulary)
    return [f"{unseen.share:.2%}", ", ".join(map(in_brief, unseen.words[:4]))]


def packing_table(card: Card) -> Table:
    """An epoch as the model meets it."""
    packing, stream = packing_of(card.stream), card.stream
    per_step = packing.real[1] / packing.steps
    rows = [
        ["row", f"{stream.row_lengths[0]} source + {stream.row_lengths[1]} target tokens"],
        ["batch", f"{card.config.batch_rows} rows, on average {per_step:,.0f} real target tokens"],
        ["epoch", f"{packing.pairs:,} pairs in {packing.rows:,} rows ({packing.pairs / packing.rows:.2f} a row)"],
        ["steps an epoch", f"{packing.steps:,}"],
        ["fill", both(card, packing.fill())],
        ["fill, one pair a row", both(card, packing.fill_of_single_pairs())],
        ["fingerprint", stream.fingerprint[:12]],
    ]
    sampling = card.config.subword_sampling
    note = f"Its subwords are drawn at random (data.subword_sampling={sampling:g}); elsewhere the likeliest count."
    return Table("Packing", note if sampling else "", ["", ""], rows)


def samples_table(card: Card, trained: list[Pairs]) -> Table:
    """Pairs of every source from short to long, two of all with their pieces."""
    each = -(-SAMPLES // len(trained))
    samples = zip(card.config.train, (samples_of(pairs, each) for pairs in trained), strict=True)
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
