"""Beam search: from sources to the best-scored translations, one position at a time."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import EOS, PAD
from model.decoding.hypotheses import Hypotheses, Sources, gather, no_hypotheses, select
from model.decoding.next_token import Candidates, likeliest
from model.decoding.settings import SearchSettings


class Beams(NamedTuple):
    """The state of a beam search: K live hypotheses per sentence, most likely first, and the J best ended ones."""

    positions: Int[Array, " B"]  # tokens in each live hypothesis of a sentence
    tokens: Int[Array, "B K T"]
    log_probs: Float[Array, "B K"]  # -inf: no hypothesis
    covered: Float[Array, "B K S"]  # attention to each source token so far, if the ranking needs it
    best: Hypotheses
    done: Bool[Array, " B"]
    spelled: Int[Array, "B K"] | None


@dataclass(frozen=True)
class BeamSearch:
    """The ``settings.count`` best-scored translations in a beam of ``settings.beam_size``, best first.

    In each step, a hypothesis that takes EOS ends if it is among the K most likely of all continuations; the K most
    likely continuations without EOS stay alive.

    The search for a sentence stops when no live hypothesis can enter its J best. Log-probabilities only fall, no
    divisor exceeds the one at the limit, and coverage adds nothing. So the highest live log-probability divided by the
    divisor at the limit bounds all future scores, and stopping does not change the result. If a sentence reaches its
    limit with fewer than J ended hypotheses, its most likely live ones are added after them.
    """

    settings: SearchSettings

    @property
    def beams(self) -> int:
        return self.settings.beam_size

    def start(self, sources: Sources) -> Beams:
        """The initial state: hypotheses without tokens."""
        (batch, width), max_length = sources.tokens.ids.shape, self.settings.max_length
        return Beams(
            positions=jnp.zeros(batch, jnp.int32),
            tokens=jnp.full((batch, self.beams, max_length), PAD, jnp.int32),
            # Start with one hypothesis: the others would repeat it.
            log_probs=jnp.full((batch, self.beams), -jnp.inf).at[:, 0].set(0),
            covered=jnp.zeros((batch, self.beams, width)),
            best=no_hypotheses(batch, self.settings.count, max_length),
            done=sources.row_limits() == 0,
            spelled=sources.start_spelling(self.beams),
        )

    def extend(
        self, beams: Beams, logits: Float[Array, "B K V"], seen: Float[Array, "B K S"], sources: Sources
    ) -> tuple[Beams, Int[Array, "B K"]]:
        """The hypotheses with one more token, and their parents."""
        ranking, limits, lengths = self.settings.ranking, sources.row_limits(), beams.positions + 1
        tokens, found, covered = self._continuations(beams, logits, seen, sources)
        ends, all_lengths = found.tokens == EOS, jnp.broadcast_to(lengths[:, None], found.tokens.shape)
        scores = ranking.scores(found.log_probs, all_lengths, covered, sources.tokens.segments)
        candidates = Hypotheses(tokens, all_lengths, found.log_probs, scores, ends)

        newly_ended = _only(candidates, ends & (jnp.arange(ends.shape[1]) < self.beams))
        best = _best_of(beams.best, newly_ended)
        likely, order = jax.lax.top_k(jnp.where(ends, -jnp.inf, found.log_probs), self.beams)
        live = gather(candidates, order)._replace(log_probs=likely)
        at_limit = lengths >= limits
        best = select(at_limit, _fill(best, _only(live, likely > -jnp.inf)), best)
        best = select(beams.done, beams.best, best)

        done = beams.done | at_limit | (likely[:, 0] / ranking.divisor(limits) <= best.scores[:, -1])
        parents = gather(found.parents, order)
        spelling = sources.spelled(beams.spelled)
        spelled = spelling and spelling.of(parents).after(gather(found.tokens, order)).states
        positions = jnp.where(done, beams.positions, lengths)  # stays within a table of positions
        return Beams(positions, live.tokens, likely, gather(covered, order), best, done, spelled), parents

    def _continuations(
        self, beams: Beams, logits: Float[Array, "B K V"], seen: Float[Array, "B K S"], sources: Sources
    ) -> tuple[Int[Array, "B C T"], Candidates, Float[Array, "B C S"]]:
        """The 2K most likely continuations (at most K with EOS): tokens, candidates, attention to sources."""
        found = likeliest(beams.log_probs, logits, sources.spelled(beams.spelled), 2 * self.beams)
        covered = beams.covered + seen if self.settings.ranking.coverage_penalty else beams.covered
        tokens = put(gather(beams.tokens, found.parents), beams.positions, found.tokens)
        return tokens, found, gather(covered, found.parents)

    def finish(self, beams: Beams, sources: Sources) -> Hypotheses:
        return beams.best


def put(tokens: Int[Array, "B K T"], positions: Int[Array, " B"], new: Int[Array, "B K"]) -> Int[Array, "B K T"]:
    """Write the new tokens into the hypotheses, at their sentence's position."""
    is_there = jnp.arange(tokens.shape[2]) == positions[:, None, None]
    return jnp.where(is_there, new[..., None], tokens)


def _only(hypotheses: Hypotheses, condition: Bool[Array, "B C"]) -> Hypotheses:
    """The hypotheses for which the condition holds, with empty ones in the other places."""
    return select(condition, hypotheses, no_hypotheses(*hypotheses.tokens.shape))


def _best_of(old: Hypotheses, new: Hypotheses) -> Hypotheses:
    """The J best of both; ties go to the earlier ones."""
    both = Hypotheses(*(jnp.concatenate(pair, axis=1) for pair in zip(old, new, strict=True)))
    _, places = jax.lax.top_k(both.scores, old.scores.shape[1])
    return gather(both, places)


def _fill(best: Hypotheses, live: Hypotheses) -> Hypotheses:
    """``best``, with the first live hypotheses in its empty places."""
    places, last = jnp.arange(best.scores.shape[1]) - best.ended.sum(axis=1, keepdims=True), live.scores.shape[1] - 1
    return select((places < 0) | (places > last), best, gather(live, jnp.clip(places, 0, last)))
