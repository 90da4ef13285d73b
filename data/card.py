"""The data card, which shows a corpus in tables: its lengths, words, pieces and packed rows (scripts/inspect_data.py).

P sentence pair · V vocabulary.

A word is a run of letters and digits that may have apostrophes and hyphens inside; case is ignored.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Float, Int

from common.files import sha256
from common.special_tokens import EOS
from common.text import in_brief
from common.text_table import Table
from data.config import DataConfig, TokenizerConfig
from data.corpus.report import Dropped
from data.pairs import Pairs
from data.prepare import Prepared
from data.sentences import BLOCK
from data.tokens.table import TokenTable
from data.tokens.tokenizer import encode

WORD = re.compile(r"\w+(?:[-'’]\w+)*")
SAMPLES = 8  # pairs in total; one from each source if there are more sources
OFTEN = 100  # occurrences that are enough to learn a piece (https://arxiv.org/abs/2004.02334)


@dataclass(frozen=True)
class Text:
    """One side of a split: its sentences, their lengths, their tokens with EOS, and the count of each word."""

    sentences: Sequence[str]
    characters: Int[np.ndarray, " P"]
    words: Int[np.ndarray, " P"]
    tokens: TokenTable
    word_counts: Counter[str]

    def tokens_per_word(self) -> float:
        """Tokens per word, without EOS."""
        return float(self.tokens.length.sum() - len(self.sentences)) / max(1, self.word_counts.total())


@dataclass(frozen=True)
class Card:
    """A corpus as training sees it, and the text of both sides of every split."""

    config: DataConfig
    tokenizer_config: TokenizerConfig
    prepared: Prepared
    texts: dict[str, tuple[Text, Text]]

    @property
    def languages(self) -> tuple[str, str]:
        return self.config.source, self.config.target

    def sides(self) -> Iterator[tuple[str, str, Text]]:
        """Split, language and text for both sides of each split, training first."""
        for split, texts in self.texts.items():
            for language, text in zip(self.languages, texts, strict=True):
                yield split, language, text


def build_card(config: DataConfig, tokenizer_config: TokenizerConfig, prepared: Prepared) -> Card:
    """Compute the statistics of a corpus that was prepared with these configs."""
    corpus, texts = prepared.corpus, {}
    for split, pairs in (("train", corpus.training), ("valid", corpus.valid), ("test", corpus.test)):
        source, target = (count_text(side, encode(prepared.tokenizer, side)) for side in (pairs.sources, pairs.targets))
        texts[split] = source, target
    return Card(config, tokenizer_config, prepared, texts)


def count_text(sentences: Sequence[str], tokens: TokenTable) -> Text:
    word_counts: Counter[str] = Counter()
    lengths = np.zeros((2, len(sentences)), dtype=np.int64)
    for index, sentence in enumerate(sentences):
        words = WORD.findall(sentence.lower())
        word_counts.update(words)
        lengths[:, index] = len(sentence), len(words)
    return Text(sentences, lengths[0], lengths[1], tokens, word_counts)


def summarise_lengths(values: Int[np.ndarray, " P"]) -> tuple[float, int, int, int]:
    """The mean, the 50th and 95th percentiles (always lengths that occur), and the maximum."""
    median, percentile_95 = np.percentile(values, [50, 95], method="inverted_cdf")
    return float(values.mean()), int(median), int(percentile_95), int(values.max())


def length_ratios(sources: Int[np.ndarray, " P"], targets: Int[np.ndarray, " P"]) -> Float[np.ndarray, "3"]:
    """The 5th, 50th and 95th percentiles of target length ÷ source length; an empty side counts as length 1."""
    return np.percentile(np.maximum(targets, 1) / np.maximum(sources, 1), [5, 50, 95])


def count_pieces(tokens: TokenTable, vocab_size: int) -> Int[np.ndarray, " V"]:
    """How often each piece occurs in the table's sentences; the flat array may have other sentences between them."""
    blocks = (tokens.take(slice(i, i + BLOCK)).compact().flat for i in range(0, len(tokens.length), BLOCK))
    return np.sum([np.bincount(block, minlength=vocab_size) for block in blocks], axis=0)


def find_unseen_words(training: Counter[str], words: Counter[str]) -> tuple[float, list[str]]:
    """The words not seen in training: their share of all words, and a list of them, most frequent first."""
    unseen = {word: count for word, count in words.items() if word not in training}
    return sum(unseen.values()) / max(1, words.total()), sorted(unseen, key=lambda word: (-unseen[word], word))


def sample_pairs(pairs: Pairs, count: int) -> list[tuple[str, str]]:
    """Pairs from short to long, evenly spaced in order of length; always the same ones."""
    lengths = [len(source) + len(target) for source, target in zip(pairs.sources, pairs.targets, strict=True)]
    order = np.argsort(lengths, kind="stable")
    count = min(count, len(pairs))
    chosen = [int(order[(2 * i + 1) * len(pairs) // (2 * count)]) for i in range(count)]
    return [(pairs.sources[index], pairs.targets[index]) for index in chosen]


def build_tables(card: Card) -> list[Table]:
    counts = [count_pieces(text.tokens, card.prepared.tokenizer.vocab_size) for _, _, text in card.sides()]
    of_text = [table(card) for table in (sources_table, overlap_table, sentences_table, lengths_table)]
    of_pieces = [tokenizer_table(card, counts[0] + counts[1]), spelling_table(card, counts)]
    return [*of_text, *of_pieces, packing_table(card), samples_table(card)]


def sources_table(card: Card) -> Table:
    """Every source and the fate of its rows."""
    config, files = card.config, card.prepared.corpus.files
    visits = sum(account.pairs * account.weight for account in files.train)
    rows = []
    for name, account in zip(config.train, files.train, strict=True):
        counts = [f"{account.rows:,}", str(account.dropped()), f"{account.pairs:,}", f"{account.weight:g}"]
        rows.append(["train", name, *counts, f"{account.pairs * account.weight / visits:.1%}", account.sha256[:12]])
    for split, name, report in (("valid", config.valid, files.valid), ("test", config.test, files.test)):
        pairs, digest = len(card.texts[split][0].sentences), report.sha256[:12] if name else "–"
        counts = [f"{report.rows:,}", str(Dropped(report.malformed, report.empty)), f"{pairs:,}", "", ""]
        rows.append([split, name or "taken out of train", *counts, digest])
    header = ["split", "source", "rows", "dropped", "pairs", "weight", "of an epoch", "SHA-256"]
    note = f"data.root={config.root}; an epoch has weight × pairs of each source"
    if over_long := card.prepared.stream.encoded.over_long:
        note += f", without {over_long:,} that are too long for a row"
    return Table("Sources", f"{note}.", header, rows)


def overlap_table(card: Card) -> Table:
    rows = []
    for splits, shared in card.prepared.corpus.overlap.items():
        examples = [*shared.source.examples, *shared.target.examples, ""]
        rows.append([splits, f"{shared.source.shared:,}", f"{shared.target.shared:,}", in_brief(examples[0])])
    header = ["splits", *(f"shared {language}" for language in card.languages), "such as"]
    return Table("Leak audit", "Distinct sentences that two splits share, case and punctuation ignored.", header, rows)


def sentences_table(card: Card) -> Table:
    source, target = card.languages
    rows = []
    for split, (sources, targets) in card.texts.items():
        pairs, *distinct = len(sources.sentences), len(set(sources.sentences)), len(set(targets.sentences))
        ratios = [f"{ratio:.2f}" for ratio in length_ratios(sources.characters, targets.characters)]
        rows.append([split, *(f"{n:,}" for n in (pairs, *distinct)), f"{pairs / distinct[0]:.3f}", *ratios])
    note = f"Ratio: characters on the {target} side divided by the {source} side; 5th, 50th and 95th percentiles."
    header = ["split", "pairs", f"distinct {source}", f"distinct {target}", "references per source"]
    return Table("Sentences", note, [*header, "ratio 5 %", "50 %", "95 %"], rows)


def lengths_table(card: Card) -> Table:
    rows = []
    for unit in ("characters", "words", "tokens"):
        for split, language, text in card.sides():
            values = {"characters": text.characters, "words": text.words, "tokens": text.tokens.length}[unit]
            mean, *lengths = summarise_lengths(values)
            rows.append([unit, split, language, f"{mean:.1f}", *(f"{length:,}" for length in lengths)])
    note = "Per sentence. Words are runs of letters and digits; tokens include EOS, as in packed rows."
    return Table("Lengths", note, ["counted", "split", "side", "mean", "median", "95 %", "longest"], rows)


def tokenizer_table(card: Card, counts: Int[np.ndarray, " V"]) -> Table:
    tokenizer = card.prepared.tokenizer
    spelled = ~tokenizer.is_byte
    special = [*range(EOS + 1), *chain.from_iterable(map(tokenizer.tag, card.languages))]
    spelled[special] = False
    used, often = int((counts[spelled] > 0).sum()), int((counts[spelled] >= OFTEN).sum())
    rows = [
        ["type", card.tokenizer_config.type],
        ["pieces", f"{tokenizer.vocab_size:,}: {spelled.sum():,} of text, 256 bytes, {len(special)} special ones"],
        ["used in training", f"{used:,} of the pieces of text ({used / spelled.sum():.1%})"],
        [f"at least {OFTEN} times", f"{often:,} ({often / spelled.sum():.1%})"],
        ["SHA-256", sha256(tokenizer.model)[:12]],
    ]
    note = f"Gowda and May (2020) advise the largest vocabulary with 95 % of its pieces at least {OFTEN} times."
    return Table("Tokenizer", note, ["", ""], rows)


def spelling_table(card: Card, counts: list[Int[np.ndarray, " V"]]) -> Table:
    rows = []
    for index, ((split, language, text), pieces) in enumerate(zip(card.sides(), counts, strict=True)):
        of_bytes = pieces[card.prepared.tokenizer.is_byte].sum() / max(1, pieces.sum())
        words = [f"{text.word_counts.total():,}", f"{len(text.word_counts):,}"]
        share, unseen = find_unseen_words(card.texts["train"][index % 2].word_counts, text.word_counts)
        coverage = ["–" if split == "train" else f"{share:.2%}", ", ".join(map(in_brief, unseen[:4]))]
        rows.append([split, language, f"{text.tokens_per_word():.2f}", f"{of_bytes:.3%}", *words, *coverage])
    header = ["split", "side", "tokens per word", "bytes", "words", "distinct", "unseen", "such as"]
    note = "Tokens per word: without EOS. Bytes: share of the tokens. Unseen: share of the words that training lacks."
    return Table("Spelling and coverage", note, header, rows)


def packing_table(card: Card) -> Table:
    stream = card.prepared.stream
    count, pairs = sum(stream.windows.rows(0, i) for i in range(stream.windows.count(0))), stream.windows.visits(0)
    fill = stream.fill()
    real = fill[1] * stream.row_lengths[1] * card.config.batch_rows
    rows = [
        ["row", f"{stream.row_lengths[0]} source + {stream.row_lengths[1]} target tokens"],
        ["batch", f"{card.config.batch_rows} rows, with about {real:,.0f} real target tokens"],
        ["epoch", f"{pairs:,} pairs in {count:,} rows ({pairs / count:.2f} per row)"],
        ["steps per epoch", f"{stream.steps_in(0):,}"],
        ["fill", both_sides(fill)],
        ["fill, one pair per row", both_sides([share * count / pairs for share in fill])],
        ["fingerprint", stream.fingerprint[:12]],
    ]
    sampling = card.config.subword_sampling
    note = f"Subwords are random here (data.subword_sampling={sampling:g}); other tables use the most probable ones."
    return Table("Packing", note if sampling else "", ["", ""], rows)


def samples_table(card: Card) -> Table:
    """Pairs from every source, from short to long; two of them with their pieces."""
    tokenizer, per_source = card.prepared.tokenizer, -(-SAMPLES // len(card.config.train))
    sources = zip(card.config.train, card.prepared.corpus.by_source(), strict=True)
    chosen = [(name, pair) for name, pairs in sources for pair in sample_pairs(pairs, per_source)]
    rows = []
    for number, (name, pair) in enumerate(chosen):
        for first, language, sentence in zip((name, ""), card.languages, pair, strict=True):
            rows.append([first, language, sentence])
            if number in (len(chosen) // 3, 2 * len(chosen) // 3):
                rows.append(["", "pieces", " ".join(tokenizer.pieces(tokenizer.encode([sentence])[0]))])
    return Table("Sample pairs", "From short to long.", ["from", "side", "sentence"], rows)


def both_sides(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.1%} {side}" for side, share in zip(("source", "target"), shares, strict=True))
