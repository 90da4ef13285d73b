"""Measure the speed of decoding: this project's search and CTranslate2 on the same sentences."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import jax
import numpy as np
from jaxtyping import Int32

from benchmarks.cost.operations import DecodingCost
from benchmarks.peers import check_installed
from benchmarks.report import Report, Row, best_rate, create_report, describe_model, flops_unit, with_ratios
from benchmarks.turns import Contestant, Entrant, Results, enter, enter_products, measure
from common.errors import UserError
from common.special_tokens import EOS
from common.text_table import three_digits
from evaluation.search import search_batch
from evaluation.side_by_side import side_by_side, workers
from evaluation.translate import Hypothesis, hypotheses_of
from model.decoding.settings import SearchSettings
from model.transformer import Params, build, init_params

Decode = Callable[[int], list[list[int]]]  # beam size → tokens of each sentence, without EOS
CONTESTANTS = ("puente", "puente-bfloat16", "ctranslate2", "ctranslate2-2x1", "ctranslate2-int8")
GPU_CONTESTANTS = ("puente", "ctranslate2")


class PuenteSearch:
    """This project's search with random parameters that never end a sentence."""

    def __init__(self, cost: DecodingCost):
        self.graphdef = build(replace(cost.model, kernel="definition"), cost.vocab_size)
        self.params = forbid_eos(init_params(cost.model, cost.vocab_size, jax.random.key(0)))
        self.sources, self.length = cost.source_tokens(), cost.length

    def __call__(self, beam_size: int) -> list[list[int]]:
        parts = np.array_split(self.sources, workers())
        found = side_by_side(partial(self.search, beam_size=beam_size), parts)
        return [best.tokens for hypotheses in found for best, *_ in hypotheses]

    def search(self, sources: Int32[np.ndarray, "B S"], beam_size: int) -> list[list[Hypothesis]]:
        models, settings = ((self.graphdef,), (self.params,)), SearchSettings(self.length, beam_size)
        limits, numbers = np.full(len(sources), self.length, np.int32), np.zeros(len(sources), np.uint32)
        return list(hypotheses_of(search_batch(*models, sources, limits, None, numbers, np.uint32(0), settings)))


def forbid_eos(params: Params) -> Params:
    """Change a pre-norm model so that the decoder's output always points away from the embedding of EOS."""
    bias, table = params["final_norms"][1]["bias"], params["embedding"]["table"]
    decoder_norm = params["final_norms"][1] | {"bias": bias.at[0].set(10.0)}
    embedding = params["embedding"] | {"table": table.at[EOS].set(0.0).at[EOS, 0].set(-10.0)}
    return params | {"final_norms": params["final_norms"] | {1: decoder_norm}, "embedding": embedding}


def load(name: str, cost: DecodingCost) -> Decode:
    """Return a contestant with random weights; UserError if its library is not installed or cannot compute here."""
    match name:
        case "puente":
            return PuenteSearch(cost)
        case "puente-bfloat16":
            return PuenteSearch(replace(cost, model=replace(cost.model, matmul_dtype="bfloat16")))
        case "ctranslate2" | "ctranslate2-int8" | "ctranslate2-2x1":
            check_installed("ctranslate2")
            from benchmarks.peers.ctranslate2 import CTranslate2Search

            compute_type = "int8" if name == "ctranslate2-int8" else cost.model.dtype
            return CTranslate2Search(cost, compute_type, workers=2 if name == "ctranslate2-2x1" else 1)
        case _:
            raise NotImplementedError(f"contestant {name}")


def check_tokens(name: str, cost: DecodingCost, tokens: list[list[int]]) -> None:
    """RuntimeError unless every sentence has exactly ``cost.length`` tokens: times must be for the same work."""
    lengths = sorted({len(sentence) for sentence in tokens})
    if (len(tokens), lengths) != (cost.batch, [cost.length]):
        found = f"{len(tokens)} sentences of {lengths} tokens"
        raise RuntimeError(f"{name} returned {found} instead of {cost.batch} of {cost.length}")


def prepare(beams: Sequence[int], contestant: Contestant[DecodingCost]) -> Entrant:
    """Return an entrant with a call for each beam size, after checking their results."""
    name, cost = contestant.name, contestant.workload
    decode = load(name, cost)
    for beam_size in beams:
        check_tokens(name, cost, decode(beam_size))
    return enter({beam_size: partial(decode, beam_size) for beam_size in beams})


def measure_decoding(cost: DecodingCost, beams: Sequence[int], names: Sequence[str], rounds: int) -> Report:
    """Measure contestants, each in its own process, at every beam size; UserError if none can take part."""
    contestants = [Contestant(name, cost) for name in names]
    return report_decoding(measure([contestants], partial(prepare, beams), enter_products, rounds, apart=True))


def report_decoding(results: Results[DecodingCost]) -> Report:
    """Return the figures by beam size, with ceilings at the rate of plain products; UserError if nobody took part."""
    cost = results.measurements[0].contestant.workload
    rows = [
        Row(each.contestant, beam, milliseconds, cost.batch * cost.flops(beam), cost.batch)
        for each in results.measurements
        for beam, milliseconds in each.milliseconds.items()
    ]
    if not rows:
        raise UserError("; ".join(results.notes()))
    rows, cells, rate = with_ratios(rows, ("ctranslate2", "puente")), [], best_rate(results.rates)
    beams = {row.call: cost.flops(row.call) for row in rows}
    for beam, flops in beams.items():
        for row in [row for row in rows if row.call == beam]:
            speed = three_digits(row.per_second)
            cells.append([str(beam), row.contestant.name, speed, *row.speed_cells(results.rates)])
        ceiling, speed = three_digits(rate / flops), three_digits(rate / flops_unit(results.rates)[1])
        cells.append([str(beam), "ceiling", ceiling, "", speed, "100%"])
    header = ["beam", "contestant", "sentences/s", "ratio", flops_unit(results.rates)[0], "of rate"]
    costs = ", ".join(f"{three_digits(flops / 1e6)} with beam {beam}" for beam, flops in beams.items())
    what = f"{describe_model(cost.model, cost.vocab_size)}: {cost}"
    return create_report(results, "Decoding", what, header, cells, rows, f"MFLOP a sentence: {costs}.")
