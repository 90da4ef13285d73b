"""Sentences ↔ token ids: one SentencePiece vocabulary for both languages (Kudo and Richardson 2018).

Text is spelled without any normalisation of SentencePiece's own, so decoding gives back exactly what was encoded.
"""

import dataclasses
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import sentencepiece

from common.digests import sha256
from common.disk_cache import load_or_compute
from common.errors import UserError
from common.files import write_atomically
from common.special_tokens import BOS, EOS, PAD, UNK
from data.config import TokenizerConfig
from data.pairs import Pairs
from data.store.sentences import blocks_of

MODEL_FILE, KEY_FILE = "tokenizer.model", "tokenizer.json"

# SentencePiece writes a space as U+2581 and so would read a real U+2581 back as a space. Normalised text holds no
# white space but the plain space, which leaves U+001F (white space to Python) free to stand for it inside.
META, META_STAND_IN = "\u2581", "\x1f"

LONGEST = 4192  # bytes of a sentence that SentencePiece trains on, by its own choice; longer ones are left out
# Pairs that a vocabulary is trained on: SentencePiece keeps their text in memory, some 2 kB for each. Its own limit,
# input_sentence_size, would do, but it is written into the model file, and so would change that of every small corpus.
ENOUGH = 1_000_000
CANDIDATES = 16  # segmentations that subword regularisation draws from
BLOCK = 500  # sentences that a thread takes at a time


class Tokenizer:
    """A trained vocabulary. ``model`` is the SentencePiece file; ``key`` names what it was trained on.

    ``scores`` has the log-probability of each piece.

    ValueError if the file is none, or has other special symbols.
    """

    def __init__(self, model: bytes, key: str = "") -> None:
        self.model = model
        self.key = key
        self._processor = processor_of(model)
        self.scores = np.array([self._processor.get_score(piece) for piece in range(self.vocab_size)])

    @property
    def vocab_size(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """The ids of each normalised sentence, without BOS and EOS."""
        ids: list[list[int]] = self._processor.encode([s.replace(META, META_STAND_IN) for s in sentences])
        return ids

    def segmentations(self, sentences: Sequence[str]) -> list[list[list[int]]]:
        """Up to 16 segmentations of each normalised sentence, the likeliest first; at least one, if an empty one.

        SentencePiece searches for them in as many threads as there are processors.
        """
        texts = [s.replace(META, META_STAND_IN) for s in sentences]
        search = partial(self._processor.nbest_encode, nbest_size=CANDIDATES)
        blocks = [texts[first : first + BLOCK] for first in range(0, len(texts), BLOCK)]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return [found or [[]] for found in chain.from_iterable(threads.map(search, blocks))]

    def decode(self, ids: list[list[int]]) -> list[str]:
        """The text of each list of ids; special symbols spell nothing."""
        texts: list[str] = self._processor.decode(ids) if ids else []
        return [text.replace(META_STAND_IN, META) for text in texts]

    def pieces(self, ids: list[int]) -> list[str]:
        """How the vocabulary spells each id, for people: ``␣`` is a space, ``<0xC3>`` a byte, ``</s>`` EOS."""
        pieces: list[str] = self._processor.id_to_piece(ids)
        return [piece.replace(META, "␣") for piece in pieces]

    def save(self, run_dir: Path) -> None:
        """Write ``tokenizer.model`` and then ``tokenizer.json``, whose hash tells that both belong together."""
        write_atomically(run_dir / MODEL_FILE, self.model)
        write_atomically(run_dir / KEY_FILE, json.dumps({"key": self.key, "sha256": sha256(self.model)}) + "\n")


def processor_of(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """SentencePiece with a model file, checked: it takes an empty one for none."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    except RuntimeError as error:
        raise ValueError(f"not a SentencePiece model: {error}") from error
    if special != (PAD, UNK, BOS, EOS):
        raise ValueError(f"the ids of padding, unknown, BOS and EOS are {special}, not {(PAD, UNK, BOS, EOS)}")
    return processor


def load_tokenizer(run_dir: Path) -> Tokenizer:
    """The tokenizer saved in a run; UserError if it is missing or damaged."""
    try:
        model = (run_dir / MODEL_FILE).read_bytes()
        saved = json.loads((run_dir / KEY_FILE).read_text(encoding="utf-8"))
        if saved["sha256"] == sha256(model):
            return Tokenizer(model, str(saved["key"]))
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise UserError(f"{run_dir} has no {missing}: is it the directory of a training run?") from error
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise UserError(
        f"{run_dir / MODEL_FILE} and {KEY_FILE} do not belong together: one of them is damaged; bring both back"
    )


def train_or_load_tokenizer(
    run_dir: Path, training: Pairs, config: TokenizerConfig, *, keep: bool = False
) -> Tokenizer:
    """The run's tokenizer if it was trained on this text with this config, else a new one (not saved in the run yet).

    One that any run has trained on them is read back from the user's cache folder. Checkpoints are of no use with
    another vocabulary: a run that has some keeps its own with ``keep``, whatever the text is now. UserError if that is
    damaged or, without ``keep``, of another text or config.
    """
    key, needed = tokenizer_key(training, config), has_checkpoints(run_dir)
    if needed or (run_dir / KEY_FILE).exists():
        try:
            saved = load_tokenizer(run_dir)
            if saved.key == key or (needed and keep):
                return saved
        except UserError:
            if needed:
                raise
            # half of a crash before the first checkpoint: train it again
    if needed:
        raise UserError(
            f"{run_dir} has checkpoints with a tokenizer of other text: training pairs or tokenizer.* changed since; "
            "undo that, or set run_dir=NEW_FOLDER"
        )
    return Tokenizer(load_or_compute(name_of(key), lambda: train(training, config)), key)


def name_of(key: str) -> str:
    """What a vocabulary depends on: its key, this code and SentencePiece's."""
    return "tokenizer-" + sha256(key.encode() + Path(__file__).read_bytes() + sentencepiece.__version__.encode())


def has_checkpoints(run_dir: Path) -> bool:
    """Whether a run has any checkpoint, good or damaged."""
    return any(path.name.isdigit() for path in (run_dir / "checkpoints").glob("[0-9]*"))


def tokenizer_key(training: Pairs, config: TokenizerConfig) -> str:
    """SHA-256 of everything the tokenizer depends on: the config and every training sentence in order."""
    digest = hashlib.sha256(json.dumps(dataclasses.asdict(config), sort_keys=True).encode())
    for block in blocks_of(sentences_of(training)):
        digest.update("".join(f"\n{sentence}" for sentence in block).encode())
    return digest.hexdigest()


def sentences_of(training: Pairs, every: int = 1) -> Iterator[str]:
    """All sources and then all targets, or those of every so-manieth pair."""
    for side in (training.sources, training.targets):
        yield from islice(side, None, None, every)


def train(training: Pairs, config: TokenizerConfig) -> bytes:
    """A SentencePiece model file, the same bytes every time; UserError if the vocabulary does not suit the text.

    Of more than ``ENOUGH`` pairs it sees at most so many, at equal steps through the corpus.
    """
    model, every = io.BytesIO(), -(-len(training) // ENOUGH)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(s.replace(META, META_STAND_IN) for s in sentences_of(training, max(1, every))),
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
            num_threads=1,  # sums of floats depend on how threads share the work, and the number is in the file
            minloglevel=2,
        )
    except RuntimeError as error:
        raise UserError(explain(str(error), config.vocab_size)) from error
    return model.getvalue()


def explain(message: str, vocab_size: int) -> str:
    """SentencePiece's complaint as something to do."""
    if largest := re.search(r"too high .* <= (\d+)", message):
        return f"tokenizer.vocab_size={vocab_size} is too large for this corpus: at most {largest[1]} pieces work"
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return f"tokenizer.vocab_size={vocab_size} is too small for this corpus: at least {smallest[1]} pieces work"
    if "sentences_.empty()" in message:
        return f"every training sentence is longer than the {LONGEST} bytes that a vocabulary is trained on; cut them"
    return f"SentencePiece cannot train tokenizer.vocab_size={vocab_size} on this corpus: {message}"
