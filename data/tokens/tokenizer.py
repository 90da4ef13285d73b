"""Sentences ↔ token ids: one SentencePiece vocabulary for both languages (Kudo and Richardson 2018).

SentencePiece's own normalisation is off, so decoding returns exactly the encoded text.
"""

import io
import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import chain, islice

import numpy as np
import sentencepiece
from jaxtyping import Bool, Int32

from common.errors import UserError
from common.special_tokens import BOS, EOS, PAD, UNK
from data.config import FEWEST_PIECES, TokenizerConfig
from data.pairs import Pairs
from data.sentences import in_blocks
from data.tokens.table import GrowingTable, TokenTable, token_table, with_first

# SentencePiece writes a space as U+2581, so it would decode a real U+2581 as a space. Normalised text has no other
# white space than the plain space, so U+001F (white space to Python) is free to replace it.
META, META_STAND_IN = "\u2581", "\x1f"

MAX_SENTENCE_BYTES = 4192  # SentencePiece's own limit: it does not train on longer sentences
# SentencePiece keeps its training text in memory, about 2 kB per pair. Its own limit, input_sentence_size, is written
# into the model file, so it would change the vocabulary of every small corpus.
MAX_TRAINING_PAIRS = 1_000_000
CANDIDATES = 16  # segmentations that subword regularisation draws from
BLOCK = 500  # sentences per task of a thread
MANY = 64  # texts; fewer are encoded one by one, because for a list SentencePiece starts threads, in up to 2 ms


class Tokenizer:
    """A trained vocabulary.

    ``model`` is the SentencePiece file, ``scores`` holds each piece's log-probability. ValueError if the file is
    damaged or has other special symbols.
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = load_processor(model)
        self.scores = np.array([self._processor.get_score(piece) for piece in range(self.vocab_size)])

    def tag(self, language: str) -> list[int]:
        """The tokens to put before a source to translate into ``language``: its tag, or nothing for one direction."""
        piece = int(self._processor.piece_to_id(tag_piece(language)))
        return [piece] if self._processor.is_control(piece) else []

    @property
    def vocab_size(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The ids of each normalised sentence, without BOS and EOS."""
        texts = [s.replace(META, META_STAND_IN) for s in sentences]
        return list(map(self._processor.encode, texts) if len(texts) < MANY else self._processor.encode(texts))

    def spelling(self, beginning: str) -> tuple[Int32[np.ndarray, "states V"], int]:
        """How tokens spell a text that a translation starts with: the next state by state and token, or -1.

        In state i, i bytes are spelled. A token is allowed if it spells the next bytes, and the last one may continue
        beyond the text: "Ella" completes "Ell". In the last state, any token but PAD, UNK and BOS is allowed; in the
        one before, after a space at the end of the text, EOS is not. If the search starts in the state of the second
        result, only the tokens of ``encode`` are allowed, for when there is no room for others.
        """
        text = (META + beginning.replace(META, META_STAND_IN).replace(" ", META)).encode()
        tokens = self.encode([beginning])[0]
        last = -(-(len(text) + len(tokens) + 2) // 64) * 64 - 1  # so that the search is compiled for few lengths
        table = np.full((last + 1, self.vocab_size), -1, np.int32)
        table[last, EOS:] = table[last - 1, EOS + 1 :] = last
        for state in range(len(text)):
            rest = text[state:]
            for token, spelled in self.spelled.items():
                if spelled == rest == META.encode():
                    table[state, token] = last - 1
                elif spelled.startswith(rest):
                    table[state, token] = last
                elif rest.startswith(spelled):
                    table[state, token] = state + len(spelled)
        for space in re.finditer(META.encode(), text):  # bytes would spell U+2581 itself
            table[space.start() : space.end(), self.is_byte] = -1
        for state, token in enumerate(tokens, len(text)):
            table[state, token] = state + 1
        table[len(text) + len(tokens) - 1, tokens[-1]] = last - beginning.endswith(" ")
        return table, len(text)

    @cached_property
    def is_byte(self) -> Bool[np.ndarray, " V"]:
        """Which pieces spell one byte of a character without its own piece."""
        return np.array([self._processor.is_byte(piece) for piece in range(self.vocab_size)])

    @cached_property
    def spelled(self) -> dict[int, bytes]:
        """The bytes that each token spells, without tokens that spell none."""
        spelled = {}
        for token, piece in enumerate(self.vocabulary()):
            if self.is_byte[token]:
                spelled[token] = bytes([int(piece[1:-1], 16)])
            elif not self._processor.is_control(token) and not self._processor.is_unknown(token):
                spelled[token] = piece.encode()
        return spelled

    def segmentations(self, sentences: Sequence[str]) -> list[list[list[int]]]:
        """Up to 16 segmentations of each normalised sentence, most probable first; an empty one if it is empty."""
        blocks = in_blocks((s.replace(META, META_STAND_IN) for s in sentences), BLOCK)
        search = partial(self._processor.nbest_encode, nbest_size=CANDIDATES)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return [found or [[]] for found in chain.from_iterable(threads.map(search, blocks))]

    def decode(self, ids: list[list[int]]) -> list[str]:
        """The text of each list of ids; special symbols are left out."""
        texts = map(self._processor.decode, ids) if len(ids) < MANY else self._processor.decode(ids)
        return [text.replace(META_STAND_IN, META) for text in texts]

    def pieces(self, ids: list[int]) -> list[str]:
        """The readable spelling of each id: ``␣`` is a space, ``<0xC3>`` a byte, ``</s>`` EOS."""
        return [piece.replace(META, "␣") for piece in self._processor.id_to_piece(ids)]

    def vocabulary(self) -> list[str]:
        """Every piece as spelled in the SentencePiece file, by id."""
        return list(self._processor.id_to_piece(list(range(self.vocab_size))))


def tag_piece(language: str) -> str:
    """The control symbol for a target language. No text is ever encoded as a control symbol."""
    return f"<2{language}>"


def encode(
    tokenizer: Tokenizer, sentences: Iterable[str], tags: Int32[np.ndarray, " sentences"] | None = None
) -> TokenTable:
    """The tokens of all sentences, after their tags if there are any, mapped from disk."""
    table = GrowingTable()
    for block in in_blocks(sentences):
        tokens, done = token_table(tokenizer.encode(block)), len(table)
        table.append(tokens if tags is None else with_first(tokens, tags[done : done + len(block)]))
    return table.view()


def load_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Load and check a SentencePiece model file: SentencePiece itself accepts an empty one."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    except RuntimeError as error:
        raise ValueError(f"not a SentencePiece model: {error}") from error
    if special != (PAD, UNK, BOS, EOS):
        raise ValueError(f"the ids of padding, unknown, BOS and EOS are {special}, not {(PAD, UNK, BOS, EOS)}")
    return processor


def train(training: Pairs, config: TokenizerConfig, languages: Sequence[str] = ()) -> bytes:
    """Train a vocabulary on at most ``MAX_TRAINING_PAIRS`` pairs, evenly spaced in the corpus.

    Returns the SentencePiece file, the same bytes every time. UserError if the vocabulary size does not suit the text.
    """
    model, step = io.BytesIO(), max(1, -(-len(training) // MAX_TRAINING_PAIRS))
    sentences = chain.from_iterable(islice(side, None, None, step) for side in (training.sources, training.targets))
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(s.replace(META, META_STAND_IN) for s in sentences),
            model_writer=model,
            model_type=config.type,
            vocab_size=config.vocab_size,
            character_coverage=config.character_coverage,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            control_symbols=list(map(tag_piece, languages)),
            num_threads=1,  # sums of floats depend on how threads share the work, and the file records the number
            minloglevel=2,
        )
    except RuntimeError as error:
        raise UserError(explain(str(error), config.vocab_size)) from error
    return model.getvalue()


def explain(message: str, vocab_size: int) -> str:
    """Turn SentencePiece's error message into advice."""
    if largest := re.search(r"too high .* <= (\d+)", message):
        if int(largest[1]) < FEWEST_PIECES:
            few = f"it has at most {largest[1]} pieces, and no vocabulary is below {FEWEST_PIECES}: add sentences"
            return f"tokenizer.vocab_size={vocab_size} is too large for this corpus: {few}"
        return f"tokenizer.vocab_size={vocab_size} is too large for this corpus: at most {largest[1]} pieces work"
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return f"tokenizer.vocab_size={vocab_size} is too small for this corpus: at least {smallest[1]} pieces work"
    if "sentences_.empty()" in message:
        return f"every training sentence is longer than SentencePiece's limit of {MAX_SENTENCE_BYTES} bytes; cut them"
    return f"SentencePiece cannot train tokenizer.vocab_size={vocab_size} on this corpus: {message}"
