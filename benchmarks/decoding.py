"""How fast sentences are decoded: this project's search and other engines, each doing the same work."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import groupby
from typing import Any

import jax
import numpy as np
from flax import nnx
from jaxtyping import Int

from benchmarks.cost.decoding import Work
from benchmarks.peers.decoding import CTranslate2, Marian, absence_of_ctranslate2, absence_of_marian
from common.errors import UserError
from common.special_tokens import EOS
from common.text_table import Table, three_digits
from evaluation.evaluate import Evaluation
from evaluation.translate import hypotheses_of, search_batch
from model.config import DecodingConfig
from model.decoding.hypotheses import Hypotheses
from model.decoding.settings import SearchSettings
from model.transformer import Params, Transformer, build, init_params

Decode = Callable[[int], list[list[int]]]  # beam size → each sentence's tokens, without the end
Row = dict[str, Any]  # of the report: a beam size, a contestant and its figures

CONTESTANTS = ("puente", "puente-bfloat16", "marian", "ctranslate2", "ctranslate2-2x1", "ctranslate2-int8")
GPU_CONTESTANTS = ("puente", "marian", "ctranslate2")


def checked(work: Work) -> Work:
    """The same, if there is anything to do."""
    for option, number in (("batch", work.batch), ("sources", work.sources), ("length", work.length)):
        if number < 1:
            raise UserError(f"--{option}={number} must be 1 or more")
    return work


def beams_of(text: str) -> list[int]:
    """Beam sizes, as the command line has them."""
    try:
        beams = [int(beam) for beam in text.split(",")]
    except ValueError:
        raise UserError(f"--beams={text} is not of the form K,K,…, such as 1,5") from None
    if min(beams) < 1:
        raise UserError(f"--beams={text}: every beam size must be 1 or more")
    return beams


def names_of(text: str | None, gpu: bool) -> list[str]:
    """Contestants, as the command line has them; all of them if it has none."""
    known = GPU_CONTESTANTS if gpu else CONTESTANTS
    chosen = text.split(",") if text else list(known)
    for name in chosen:
        if name not in known:
            raise UserError(f"--contestants: there is no {name} here; choose from {','.join(known)}")
    return chosen


def able(names: list[str], work: Work) -> tuple[list[str], list[str]]:
    """Those that can take part, and a line for each that cannot. UserError if nobody can."""
    reasons = {name: refusal(name, work) for name in names}
    notes = [f"{name} {reason}" for name, reason in reasons.items() if reason]
    if len(notes) == len(reasons):
        raise UserError("; ".join(notes))
    return [name for name, reason in reasons.items() if not reason], notes


def refusal(name: str, work: Work) -> str:
    """Why a contestant cannot take part, as the end of a sentence; nothing if it can."""
    match name:
        case "marian":
            return absence_of_marian()
        case "ctranslate2" | "ctranslate2-2x1":
            return absence_of_ctranslate2(work.model.dtype)
        case "ctranslate2-int8":
            return absence_of_ctranslate2("int8")
        case _:
            return ""


def prepare(name: str, work: Work, beams: list[int]) -> dict[int, Callable[[], list[list[int]]]]:
    """A contestant's call for each beam size, which it has done once, as it should."""
    decode = contestant(name, work)
    for beam_size in beams:
        check(name, work, decode(beam_size))
    return {beam_size: partial(decode, beam_size) for beam_size in beams}


def contestant(name: str, work: Work) -> Decode:
    """One with weights of its own, in the dtype of the work unless its name has another."""
    match name:
        case "puente":
            return Puente(work)
        case "puente-bfloat16":
            return Puente(replace(work, model=replace(work.model, matmul_dtype="bfloat16")))
        case "marian":
            return Marian(work)
        case "ctranslate2":
            return CTranslate2(work, work.model.dtype)
        case "ctranslate2-2x1":
            return CTranslate2(work, work.model.dtype, workers=2)
        case "ctranslate2-int8":
            return CTranslate2(work, "int8")
        case _:
            raise ValueError(f"no contestant {name}")


def check(name: str, work: Work, found: list[list[int]]) -> None:
    """RuntimeError unless each sentence has exactly the tokens asked for: else the times compare different work."""
    if (len(found), {len(tokens) for tokens in found}) != (work.batch, {work.length}):
        lengths = sorted({len(tokens) for tokens in found})
        raise RuntimeError(
            f"{name} gave {len(found)} sentences of {lengths} tokens instead of {work.batch} of {work.length}"
        )


class Puente:
    """This project's search, from source tokens to the target tokens of each sentence."""

    def __init__(self, work: Work):
        self.graphdef = build(replace(work.model, kernel="definition"), work.vocab_size)
        self.params = endless(init_params(work.model, work.vocab_size, jax.random.key(0)))
        self.sources, self.length = work.source_tokens(), work.length

    def __call__(self, beam_size: int) -> list[list[int]]:
        return search(self.graphdef, self.params, self.sources, beam_size, self.length)


def search(
    graphdef: nnx.GraphDef[Transformer], params: Params, sources: Int[np.ndarray, "B S"], beam_size: int, length: int
) -> list[list[int]]:
    """The search as ``evaluation.translate`` calls it; no sentence may have more than ``length`` tokens."""
    found: Hypotheses = search_batch(
        (graphdef,),
        (params,),
        sources,
        limits=np.full(len(sources), length, np.int32),
        prefixes=None,
        numbers=np.zeros(len(sources), np.uint32),
        seed=np.uint32(0),
        settings=SearchSettings(length, beam_size),
    )
    return [best.tokens for best, *_ in hypotheses_of(found)]


def endless(params: Params) -> Params:
    """Parameters of a pre-norm model that EOS never wins: the decoder's output always points away from its row."""
    bias, table = params["final_norms"][1]["bias"], params["embedding"]["table"]
    decoder_norm = params["final_norms"][1] | {"bias": bias.at[0].set(10.0)}
    embedding = params["embedding"] | {"table": table.at[EOS].set(0.0).at[EOS, 0].set(-10.0)}
    return params | {"final_norms": params["final_norms"] | {1: decoder_norm}, "embedding": embedding}


def rows_of(work: Work, milliseconds: dict[tuple[int, str], float]) -> list[Row]:
    """The figures of each beam size and contestant.

    Ratios are of sentences a second to CTranslate2 or, where it is missing, to this project.
    """
    rows = []
    for (beam_size, name), ms in milliseconds.items():
        against = next((who for who in ("ctranslate2", "puente") if (beam_size, who) in milliseconds), name)
        row: Row = {"beam_size": beam_size, "contestant": name, "milliseconds": ms, "ratio_to": against}
        row["sentences_per_second"] = 1e3 * work.batch / ms
        row["ratio"] = milliseconds[beam_size, against] / ms
        row["flops_per_sentence"] = work.flops(beam_size)
        row["flops_per_second"] = row["flops_per_sentence"] * row["sentences_per_second"]
        rows.append(row)
    return rows


def decoding_table(report: dict[str, Any]) -> Table:
    """The report's rows and, if the machine's rate in matrix products is known, the ceiling of each beam size."""
    rate = max(report["matrix_flops_per_second"].values(), default=None)
    prefix, unit = ("T", 1e12) if rate and rate >= 1e13 else ("G", 1e9)
    rows = []
    for beam, group in groupby(report["rows"], key=lambda row: str(row["beam_size"])):
        of_beam = list(group)
        rows += [[beam, *cells_of(row, rate, unit)] for row in of_beam]
        if rate:
            ceiling = rate / of_beam[0]["flops_per_sentence"]
            rows.append([beam, "ceiling", three_digits(ceiling), "", three_digits(rate / unit), "100%"])
    header = ["beam", "contestant", "sentences/s", "ratio", *([f"{prefix}FLOP/s", "of rate"] if rate else [])]
    return Table("Decoding", note_of(report), header, rows)


def cells_of(row: Row, rate: float | None, unit: float) -> list[str]:
    """A contestant and its figures."""
    cells = [row["contestant"], three_digits(row["sentences_per_second"]), f"{row['ratio']:.2f}"]
    flops = row["flops_per_second"]
    return [*cells, three_digits(flops / unit), f"{flops / rate:.0%}"] if rate else cells


def note_of(report: dict[str, Any]) -> str:
    """What was measured, and where."""
    work, model, machine = report["work"], report["work"]["model"], report["environment"]
    layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers of width {model['d_model']}"
    on_cpu = jax.default_backend() == "cpu"
    where = f"{machine['processors']} cores of {report['processor']}" if on_cpu else machine["devices"][0]
    sizes = f"{work['batch']} sentences of {work['sources']} tokens to {work['length']}"
    costs = {row["beam_size"]: row["flops_per_sentence"] for row in report["rows"]}
    cost = ", ".join(f"{three_digits(flops / 1e6)} with beam {beam}" for beam, flops in costs.items())
    against = ", ".join(dict.fromkeys(row["ratio_to"] for row in report["rows"]))
    return (
        f"{layers}, vocabulary {work['vocab_size']:,}, {model['dtype']} on {where}: {sizes}; MFLOP a sentence: {cost}; "
        f"best of {report['rounds']}; ratio to {against}."
    )


def text_row(run: str, step: int, decoding: DecodingConfig, evaluation: Evaluation) -> Row:
    """The figures of an evaluation for which everything was compiled."""
    return {
        "run": run,
        "step": step,
        "decoding": asdict(decoding),
        "sentences": len(evaluation.sources),
        "target_tokens": evaluation.target_tokens,
        "seconds": evaluation.seconds,
        "sentences_per_second": evaluation.sentences_per_second,
        "target_tokens_per_second": evaluation.target_tokens_per_second,
        "bleu": evaluation.scores.bleu,
    }


def text_table(text: Row) -> Table:
    """Real text, in a row of its own: nobody else has this model."""
    note = "The run's test set, by its own settings; nothing is compiled in that time."
    header = ["run", "step", "beam", "batch", "sentences", "sentences/s", "target tokens/s", "BLEU"]
    search = [f"{text['decoding'][key]}" for key in ("beam_size", "batch_sentences")]
    speeds = [three_digits(text["sentences_per_second"]), three_digits(text["target_tokens_per_second"])]
    row = [text["run"], str(text["step"]), *search, f"{text['sentences']:,}", *speeds, f"{text['bleu']:.2f}"]
    return Table("Decoding real text", note, header, [row])
