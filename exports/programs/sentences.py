"""Lines of text to pieces and back, as the run that was exported does it. Needs sentencepiece alone."""

import json
import sys
import unicodedata
from pathlib import Path

import sentencepiece

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
        """Translate each line, as the run does; an empty line stays empty. ValueError for a line that is too long."""
        sources = [self.encode(line) for line in lines]
        for number, source in enumerate(sources, start=1):
            if len(source) >= self.facts["longest_source"]:
                raise ValueError(f"line {number} has more than {self.facts['longest_source'] - 1} tokens: cut it first")
        found = iter(self.translate_pieces([source for source in sources if source]))
        return [self.decode(next(found)) if source else "" for source in sources]

    def encode(self, line: str) -> Pieces:
        """The pieces of a line, after the tag of the target language if the model has tags."""
        text = self.normalise(line).replace("\u2581", "\x1f")  # which SentencePiece would read as a space
        return self.facts["tag"] + self.pieces.encode(text, out_type=str) if text else []

    def decode(self, tokens: Pieces) -> str:
        text = self.pieces.decode([token for token in tokens if token != END])
        return self.normalise(text.replace("\x1f", "\u2581"))

    def normalise(self, text: str) -> str:
        return unicodedata.normalize("NFC", " ".join(text.replace("\ufeff", " ").split()))

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
