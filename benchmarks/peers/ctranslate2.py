"""CTranslate2, running our model as exported to it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import ctranslate2
import jax

from benchmarks.cost.operations import DecodingCost
from benchmarks.peers import device_name
from common.errors import UserError
from exports.ctranslate2 import save_model
from model.transformer import init_params


class CTranslate2Search:
    """Beam size → tokens of each sentence. The ``workers`` share the threads and the batch equally.

    ``compute_type`` is the dtype of weights and products. UserError if CTranslate2 does not support it here.
    """

    def __init__(self, cost: DecodingCost, compute_type: str, workers: int = 1):
        if device_name() == "cuda" and not ctranslate2.get_cuda_device_count():
            raise UserError("sees no GPU")
        if compute_type not in ctranslate2.get_supported_compute_types(device_name()):
            raise UserError(f"does not compute in {compute_type} here")
        threads = {"inter_threads": workers, "intra_threads": max(1, cost.threads // workers)}
        pieces = list(map(str, range(cost.vocab_size)))  # without a tokenizer, each token is spelled as its number
        with TemporaryDirectory(prefix="puente-benchmark-") as folder:
            params = init_params(cost.model, cost.vocab_size, jax.random.key(0))
            save_model(Path(folder), cost.model, params, pieces, "float32")
            self.translator = ctranslate2.Translator(folder, device_name(), compute_type=compute_type, **threads)
        # CTranslate2 adds EOS, so it replaces the last token.
        self.sources = [list(map(str, row[:-1])) for row in cost.source_tokens().tolist()]
        self.options = {"min_decoding_length": cost.length, "max_decoding_length": cost.length}
        self.options["max_batch_size"] = -(-cost.batch // workers)

    def __call__(self, beam_size: int) -> list[list[int]]:
        results = self.translator.translate_batch(self.sources, beam_size=beam_size, **self.options)
        return [[int(token) for token in result.hypotheses[0]] for result in results]
