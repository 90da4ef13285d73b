"""Convert lines of text to pieces and back, like the exported run. Needs only sentencepiece and sentencex."""

import json
import os
import sys
import unicodedata
from pathlib import Path
from typing import NoReturn

import sentencepiece

from capitals import in_sentence_case
from invisible import is_blank, without_invisible
from long_lines import Usual, cut, has_fewer_sentences, split_line

FOLDER = Path(__file__).parent
END = "</s>"
Pieces = list[str]


class LineTranslator:
    """The settings in this folder, its tokenizer, and the translation of lines with ``search``."""

    batch = 32  # sources to search at once

    def __init__(self, tokenizer: str) -> None:
        self.facts = json.loads((FOLDER / "export.json").read_text(encoding="utf-8"))
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / tokenizer))

    def search(self, sources: list[Pieces], limit: int) -> list[Pieces]:
        """The best translation of each source in at most ``limit`` pieces, preferring finished ones."""
        raise NotImplementedError

    def translate_pieces(self, sources: list[Pieces]) -> list[Pieces]:
        """The pieces of each translation, with </s> at the end if it ended before its limit."""
        order, found = sorted(range(len(sources)), key=lambda index: len(sources[index])), dict[int, Pieces]()
        for first in range(0, len(order), self.batch):
            batch = order[first : first + self.batch]
            limits = [self.limit(sources[index]) for index in batch]
            translations = self.search([sources[index] for index in batch], max(limits))
            for index, limit, translation in zip(batch, limits, translations, strict=True):
                is_short = len(translation) <= limit  # a longer source may have allowed more
                found[index] = translation if is_short else self.search([sources[index]], limit)[0]
        return [found[index] for index in range(len(sources))]

    def translate(self, lines: list[str]) -> list[str]:
        """Translate each line like the run; an empty line stays empty."""
        texts, usual = [self.read(line) for line in lines], Usual(**self.facts["lines"]["usual"])
        split = [self.split(text, usual) for text in texts]
        found = self.translate_parts(split)
        whole = [index for index, parts in enumerate(split) if len(parts) == 1]
        lost = [index for index in whole if self.has_lost(texts[index], found[index])]
        again = self.translate_parts([self.split(texts[index], Usual(1, usual.tokens)) for index in lost])
        return [again[lost.index(index)] if index in lost else text for index, text in enumerate(found)]

    def translate_parts(self, split: list[list[str]]) -> list[str]:
        """Translate the parts of each line, and join them."""
        found = iter(self.translate_pieces([self.encode(part) for parts in split for part in parts]))
        return [" ".join(filter(None, [self.decode(next(found)) for _ in parts])) for parts in split]

    def split(self, text: str, usual: Usual) -> list[str]:
        """The line, or the parts that the run translates it in; an empty line has none."""
        if most := self.facts["lines"]["max_source_tokens"]:
            return cut(text, most, self.count) if text else []
        return split_line(text, self.facts["source"], usual, self.count) if text else []

    def has_lost(self, text: str, translation: str) -> bool:
        """Whether a line that was translated in one piece has lost a sentence."""
        is_whole = not self.facts["lines"]["max_source_tokens"]
        return is_whole and has_fewer_sentences(translation, self.facts["target"], text, self.facts["source"])

    def read(self, line: str) -> str:
        """A line as the model reads it."""
        return in_sentence_case(self.normalise(without_invisible(line)))

    def count(self, texts: list[str]) -> list[int]:
        """The number of tokens of each text, including its end."""
        return [len(self.encode(text)) + 1 for text in texts]

    def encode(self, line: str) -> Pieces:
        """The pieces of a line, after the tag of the target language if the model has tags."""
        text = self.normalise(line).replace("\u2581", "\x1f")  # SentencePiece would read it as a space
        return self.facts["tag"] + self.pieces.encode(text, out_type=str) if text else []

    def decode(self, tokens: Pieces) -> str:
        text = self.pieces.decode([token for token in tokens if token != END])
        return self.normalise(text.replace("\x1f", "\u2581"))

    def normalise(self, text: str) -> str:
        return "" if is_blank(text) else unicodedata.normalize("NFC", " ".join(text.replace("\ufeff", " ").split()))

    def ids(self, pieces: Pieces) -> list[int]:
        """The ids of the pieces, and of </s> after them."""
        return [self.pieces.piece_to_id(piece) for piece in [*pieces, END]]

    def limit(self, source: Pieces) -> int:
        """The most tokens in a translation, including its end."""
        search = self.facts["search"]
        asked = int((len(source) + 1) * search["max_length_factor"] + search["max_length_extra"])
        return max(1, min(asked, self.facts["longest_target"]))

    def translate_input(self) -> None:
        """Translate standard input, split only at line feeds, to standard output, or exit with the reason why not."""
        lines: list[str] = []
        if not sys.stdout:
            end("standard output is closed")
        try:
            for line in sys.stdin.buffer if sys.stdin else ():
                lines.append(line.decode("utf-8").removesuffix("\n"))
        except ValueError as error:
            end(f"line {len(lines) + 1}: {error}")
        try:
            sys.stdout.buffer.writelines(f"{translation}\n".encode() for translation in self.translate(lines))
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # whoever read it, such as head, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (ValueError, OSError) as error:
            end(str(error))


def end(problem: str) -> NoReturn:
    print(f"error: {problem}", file=sys.stderr)
    os._exit(2)  # what could not be written is not tried again
