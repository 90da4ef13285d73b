"""Translate standard input line by line: python translate.py <lines.txt. The README lists the requirements."""

from typing import Any

import torch
import transformers

from sentences import END, FOLDER, LineTranslator, Pieces


class GNMT(float):
    """A length penalty that makes transformers' beam search divide by ((5 + length) / 6) ** penalty."""

    def __rpow__(self, length: float, modulo: None = None) -> float:  # instead of length ** penalty
        return float(((5 + length) / 6) ** float(self))


class Model(LineTranslator):
    """The model of this folder, with the search settings of the run that it was exported from."""

    library = f"transformers {transformers.__version__}"

    def __init__(self, **options: Any) -> None:
        super().__init__("source.spm")
        self.model = transformers.AutoModelForSeq2SeqLM.from_pretrained(FOLDER, **options).eval()

    def search(self, sources: list[Pieces], limit: int) -> list[Pieces]:
        """The best translation of each source, preferring finished ones; generation_config.json has the beam size."""
        search = self.facts["search"]
        size, kind = search["beam_size"], {"gnmt": GNMT, "length": float}[search["normalization"]]
        options = {"length_penalty": kind(search["length_penalty"]), "num_return_sequences": size} if size > 1 else {}
        with torch.inference_mode():
            rows = self.model.generate(**self.inputs(sources), max_length=limit + 1, **options)
        found = [[self.pieces.id_to_piece(token) for token in row] for row in rows[:, 1:].tolist()]
        cut = [pieces[: pieces.index(END) + 1] if END in pieces else pieces for pieces in found]
        return [max(cut[first : first + size], key=lambda each: END in each) for first in range(0, len(cut), size)]

    def log_probs(self, source: Pieces, target: Pieces) -> list[float]:
        """The log-probability of each piece of the target, including </s>."""
        ids = self.ids(target)
        decoder = torch.tensor([[self.model.config.decoder_start_token_id, *ids[:-1]]], device=self.model.device)
        with torch.inference_mode():
            logits = self.model(**self.inputs([source]), decoder_input_ids=decoder).logits[0]
        return [float(row[token]) for row, token in zip(logits.float().log_softmax(-1), ids, strict=True)]

    def inputs(self, sources: list[Pieces]) -> dict[str, torch.Tensor]:
        """Token ids and a mask, with </s> after each source."""
        rows = [torch.tensor(self.ids(source)) for source in sources]
        masks = [torch.ones_like(row) for row in rows]
        padded = (torch.nn.utils.rnn.pad_sequence(each, batch_first=True) for each in (rows, masks))
        ids, mask = (each.to(self.model.device) for each in padded)
        return {"input_ids": ids, "attention_mask": mask}


if __name__ == "__main__":
    Model().translate_input()
