"""CTranslate2, with a model converted from a random MarianMT."""

from tempfile import TemporaryDirectory

import ctranslate2
from ctranslate2.converters.transformers import MarianMTLoader

from benchmarks.cost.operations import DecodingCost
from benchmarks.peers import device_name
from benchmarks.peers.marian import build_for_decoding
from common.errors import UserError

END, UNKNOWN = "</s>", "1"


class CTranslate2Search:
    """Beam size → tokens of each sentence. Each of the ``workers`` has its share of the threads and of the batch.

    ``compute_type`` is the dtype of weights and products. UserError if CTranslate2 does not compute in it here.
    """

    def __init__(self, cost: DecodingCost, compute_type: str, workers: int = 1):
        if device_name() == "cuda" and not ctranslate2.get_cuda_device_count():
            raise UserError("sees no GPU")
        if compute_type not in ctranslate2.get_supported_compute_types(device_name()):
            raise UserError(f"does not compute in {compute_type} here")
        threads = {"inter_threads": workers, "intra_threads": max(1, cost.threads // workers)}
        with TemporaryDirectory(prefix="puente-benchmark-") as folder:
            save_model(cost, folder)
            self.translator = ctranslate2.Translator(folder, device_name(), compute_type=compute_type, **threads)
        self.sources = [[str(token) for token in row] for row in cost.source_tokens().tolist()]
        self.options = {"min_decoding_length": cost.length, "max_decoding_length": cost.length}
        self.options["max_batch_size"] = -(-cost.batch // workers)

    def __call__(self, beam_size: int) -> list[list[int]]:
        results = self.translator.translate_batch(self.sources, beam_size=beam_size, **self.options)
        return [[int(token) for token in result.hypotheses[0]] for result in results]


def save_model(cost: DecodingCost, folder: str) -> None:
    """Save a random MarianMT in CTranslate2's format; without a tokenizer, each token is spelled as its number."""
    spec = MarianMTLoader().get_model_spec(build_for_decoding(cost))
    tokens = [END, *map(str, range(1, cost.vocab_size))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.eos_token = spec.config.decoder_start_token = END
    spec.config.unk_token = spec.config.bos_token = UNKNOWN
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(folder)
