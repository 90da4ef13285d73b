"""Lines of text to pieces and back, as the run that was exported does it. Needs sentencepiece and sentencex alone."""

import json
import sys
import unicodedata
from pathlib import Path

import sentencepiece

from invisible import is_blank, without_invisible
from long_lines import Usual, cut, split_line

FOLDER = Path(__file__).parent
END = "</s>"
Pieces = list[str]


class LineTranslator:
    """The facts of this folder, its tokenizer, and the translation of lines by ``translate_pieces``."""

    def __init__(self, tokenizer: str) -> None:
        self.facts = json.loads((FOLDER / "export.json").read_text(encoding="utf-8"))
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(FOLDER / tokenizer))

    def translate_pieces(self, sources: list[Pieces]) -> list[Pieces]:
        """The pieces of each translation, with </s> at the end if it ended before its limit."""
        raise NotImplementedError

    def translate(self, lines: list[str]) -> list[str]:
        """Translate each line, as the run does; an empty line stays empty."""
        split = [self.split(line) for line in lines]
        found = iter(self.translate_pieces([self.encode(part) for parts in split for part in parts]))
        return [" ".join(filter(None, [self.decode(next(found)) for _ in parts])) for parts in split]

    def split(self, line: str) -> list[str]:
        """The line, or the parts in which the run translates it; an empty line has none."""
        text, rules = self.normalise(without_invisible(line)), self.facts["lines"]
        if not text:
            return []
        if rules["max_source_tokens"]:
            return cut(text, rules["max_source_tokens"], self.count)
        return split_line(text, self.facts["source"], Usual(**rules["usual"]), self.count)

    def count(self, texts: list[str]) -> list[int]:
        """The tokens of each text, its end included."""
        return [len(self.encode(text)) + 1 for text in texts]

    def encode(self, line: str) -> Pieces:
        """The pieces of a line, after the tag of the target language if the model has tags."""
        text = self.normalise(line).replace("\u2581", "\x1f")  # which SentencePiece would read as a space
        return self.facts["tag"] + self.pieces.encode(text, out_type=str) if text else []

    def decode(self, tokens: Pieces) -> str:
        text = self.pieces.decode([token for token in tokens if token != END])
        return self.normalise(text.replace("\x1f", "\u2581"))

    def normalise(self, text: str) -> str:
        return "" if is_blank(text) else unicodedata.normalize("NFC", " ".join(text.replace("\ufeff", " ").split()))

    def ids(self, pieces: Pieces) -> list[int]:
        """The numbers of pieces, and of </s> after them."""
        return [self.pieces.piece_to_id(piece) for piece in [*pieces, END]]

    def limit(self, source: Pieces) -> int:
        """The most tokens of a translation, its end included."""
        search = self.facts["search"]
        asked = int((len(source) + 1) * search["max_length_factor"] + search["max_length_extra"])
        return max(1, min(asked, self.facts["longest_target"]))

    def translate_input(self) -> None:
        """Translate standard input, whose lines end with line feeds alone, to standard output; or say why not."""
        try:
            lines = [line.decode("utf-8").removesuffix("\n") for line in sys.stdin.buffer]
            sys.stdout.buffer.writelines(f"{translation}\n".encode() for translation in self.translate(lines))
        except ValueError as error:
            sys.exit(f"error: {error}")
