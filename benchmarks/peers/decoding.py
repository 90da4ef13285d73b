"""Other engines that decode, as contestants: MarianMT of transformers on PyTorch, and CTranslate2.

They are what ``pip install -e '.[bench]'`` brings, never dependencies, and are imported only where they take part.
"""

from importlib.metadata import version
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import jax

from benchmarks.cost.decoding import Work

MARIAN_NEEDS = ("torch", "transformers")
CTRANSLATE2_NEEDS = (*MARIAN_NEEDS, "ctranslate2")  # its model is made from theirs
END, UNKNOWN = "</s>", "<unk>"


def absence_of_marian() -> str:
    """Why MarianMT cannot take part, as the end of a sentence; nothing if it can."""
    if missing := missing_of(MARIAN_NEEDS):
        return missing
    import torch

    return "sees no GPU" if device() == "cuda" and not torch.cuda.is_available() else ""


def absence_of_ctranslate2(compute_type: str) -> str:
    """Why CTranslate2 cannot take part, as the end of a sentence; nothing if it can."""
    if missing := missing_of(CTRANSLATE2_NEEDS):
        return missing
    import ctranslate2

    if device() == "cuda" and not ctranslate2.get_cuda_device_count():
        return "sees no GPU"
    served = compute_type in ctranslate2.get_supported_compute_types(device())
    return "" if served else f"does not compute in {compute_type} here"


def missing_of(packages: tuple[str, ...]) -> str:
    missing = [package for package in packages if find_spec(package) is None]
    return f"needs {', '.join(missing)}: pip install -e '.[bench]'" if missing else ""


def versions() -> dict[str, str | None]:
    """What is installed of them."""
    return {package: version(package) if find_spec(package) else None for package in CTRANSLATE2_NEEDS}


def device() -> str:
    """Where JAX computes, in the words of the others."""
    return "cuda" if jax.default_backend() == "gpu" else "cpu"


class Marian:
    """``generate`` of transformers' MarianMT."""

    def __init__(self, work: Work):
        import torch

        torch.set_num_threads(work.threads)
        dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
        self.model = marian_model(work).to(device(), dtypes[work.model.dtype])
        self.sources = torch.from_numpy(work.source_tokens()).long().to(device())
        self.options = {"min_new_tokens": work.length, "max_new_tokens": work.length, "do_sample": False}

    def __call__(self, beam_size: int) -> list[list[int]]:
        import torch

        mask = torch.ones_like(self.sources)
        with torch.inference_mode():
            tokens = self.model.generate(self.sources, attention_mask=mask, num_beams=beam_size, **self.options)
        return [row[1:] for row in tokens.tolist()]  # the first is what decoding starts from


def marian_model(work: Work) -> Any:
    """A MarianMT of these dimensions with random weights; its last row, beyond the vocabulary, is the padding."""
    from transformers import MarianConfig, MarianMTModel

    model, padding = work.model, work.vocab_size
    if model.num_heads * model.head_dim != model.d_model:
        raise ValueError("MarianMT has heads of width d_model / num_heads only")
    sizes = {
        "d_model": model.d_model,
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "encoder_attention_heads": model.num_heads,
        "decoder_attention_heads": model.num_heads,
        "encoder_ffn_dim": model.d_ff,
        "decoder_ffn_dim": model.d_ff,
        "max_position_embeddings": max(work.sources, work.length + 1),
    }
    tokens = {"eos_token_id": 0, "pad_token_id": padding, "decoder_start_token_id": padding, "bos_token_id": None}
    config = MarianConfig(
        vocab_size=work.vocab_size + 1,
        activation_function="relu",
        scale_embedding=True,
        forced_eos_token_id=None,  # or the last token is the end, whatever was found
        **sizes,
        **tokens,
    )
    return MarianMTModel(config).eval()


class CTranslate2:
    """CTranslate2 with so many ``workers``, each on its share of the threads and of the batch.

    ``compute_type`` is the dtype of its weights and products.
    """

    def __init__(self, work: Work, compute_type: str, workers: int = 1):
        import ctranslate2

        threads = {"inter_threads": workers, "intra_threads": max(1, work.threads // workers)}
        with TemporaryDirectory(prefix="puente-benchmark-") as folder:
            save_for_ctranslate2(work, folder)
            self.translator = ctranslate2.Translator(folder, device(), compute_type=compute_type, **threads)
        self.sources = [[str(token) for token in row] for row in work.source_tokens().tolist()]
        self.options = {"min_decoding_length": work.length, "max_decoding_length": work.length}
        self.options["max_batch_size"] = -(-work.batch // workers)

    def __call__(self, beam_size: int) -> list[list[int]]:
        found = self.translator.translate_batch(self.sources, beam_size=beam_size, **self.options)
        return [[int(token) for token in sentence.hypotheses[0]] for sentence in found]


def save_for_ctranslate2(work: Work, folder: str) -> None:
    """A random MarianMT as CTranslate2 reads it, without any tokenizer: a token is spelled as its number."""
    from ctranslate2.converters.transformers import MarianMTLoader

    spec = MarianMTLoader().get_model_spec(marian_model(work))
    tokens = [END, UNKNOWN, *map(str, range(2, work.vocab_size))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.eos_token = spec.config.decoder_start_token = END
    spec.config.unk_token = spec.config.bos_token = UNKNOWN
    spec.validate()
    spec.optimize(quantization=None)
    spec.save(folder)
