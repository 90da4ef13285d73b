"""Greedy decoding and sampling: hypotheses are extended independently of each other, one token at a time."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from common.special_tokens import EOS
from model.decoding.beam import put
from model.decoding.hypotheses import Hypotheses, Sources, no_hypotheses, select
from model.decoding.next_token import Spelling, allowed, likeliest, log_normalizers
from model.decoding.settings import Sampling, SearchSettings

Next = tuple[Float[Array, "B K"], Int[Array, "B K"]]  # log-probabilities and tokens


def draw(logits: Float[Array, "B K V"], spelling: Spelling | None, keys: Key[Array, " B"], sampling: Sampling) -> Next:
    """A token for every hypothesis, and its log-probability under the model."""
    scaled = jnp.where(allowed(jnp.arange(logits.shape[2]), spelling), logits / sampling.temperature, -jnp.inf)
    if sampling.top_k:
        least = jax.lax.top_k(scaled, min(sampling.top_k, scaled.shape[-1]))[0][..., -1:]
        scaled = jnp.where(scaled >= least, scaled, -jnp.inf)
    if sampling.top_p < 1:
        scaled = jnp.where(in_nucleus(scaled, sampling.top_p), scaled, -jnp.inf)
    drawn = jax.vmap(jax.random.categorical)(keys, scaled)
    return jnp.take_along_axis(logits, drawn[..., None], axis=-1)[..., 0] - log_normalizers(logits), drawn


def in_nucleus(logits: Float[Array, "*rows V"], top_p: float) -> Bool[Array, "*rows V"]:
    """The smallest set of most likely tokens with a total probability of at least ``top_p``; includes all ties."""
    probabilities = jax.nn.softmax(logits)
    descending = jnp.sort(probabilities, axis=-1, descending=True)
    before = jnp.cumsum(descending, axis=-1) - descending
    least = jnp.min(descending, axis=-1, keepdims=True, where=before < top_p, initial=1.0)
    return probabilities >= least


class Draws(NamedTuple):
    """The state of hypotheses that do not depend on each other."""

    positions: Int[Array, " B"]
    found: Hypotheses
    covered: Float[Array, "B K S"]
    done: Bool[Array, " B"]
    spelled: Int[Array, "B K"] | None

    @property
    def tokens(self) -> Int[Array, "B K T"]:
        return self.found.tokens


@dataclass(frozen=True)
class Independent:
    """``settings.count`` hypotheses for each sentence, in no order, extended independently of each other.

    With a key, they are random draws that depend only on the key, the sentence's own number and the sentence.
    Log-probabilities are the model's, regardless of temperature and truncation. Without a key, each takes the most
    likely next token until EOS or the sentence's limit: greedy decoding, a beam of one at less cost.
    """

    settings: SearchSettings
    key: Key[Array, ""] | None = None

    @property
    def beams(self) -> int:
        return self.settings.count

    def choose_next(
        self, logits: Float[Array, "B K V"], spelling: Spelling | None, positions: Int[Array, " B"], sources: Sources
    ) -> Next:
        if self.key is None:
            found = likeliest(jnp.zeros(logits.shape[:2]), logits, spelling, 1)
            return found.log_probs, found.tokens
        assert sources.numbers is not None
        keys = jax.vmap(jax.random.fold_in)(jax.vmap(partial(jax.random.fold_in, self.key))(sources.numbers), positions)
        return draw(logits, spelling, keys, self.settings.sampling)

    def start(self, sources: Sources) -> Draws:
        """The initial state: hypotheses without tokens."""
        (batch, width), shape = sources.tokens.ids.shape, (len(sources.limits), self.beams)
        nothing = no_hypotheses(*shape, self.settings.max_length)
        return Draws(
            positions=jnp.zeros(batch, jnp.int32),
            found=nothing._replace(log_probs=jnp.zeros(shape)),
            covered=jnp.zeros((*shape, width)),
            done=sources.row_limits() == 0,
            spelled=sources.start_spelling(self.beams),
        )

    def extend(
        self, draws: Draws, logits: Float[Array, "B K V"], seen: Float[Array, "B K S"], sources: Sources
    ) -> tuple[Draws, None]:
        """The hypotheses with one more token, except those that have ended."""
        position, found, spelling = draws.positions, draws.found, sources.spelled(draws.spelled)
        log_probs, tokens = self.choose_next(logits, spelling, position, sources)
        spelled = spelling and spelling.after(tokens).states
        over = found.ended | draws.done[:, None]
        longer = found._replace(
            tokens=put(found.tokens, position, tokens),
            lengths=found.lengths + 1,
            log_probs=found.log_probs + log_probs,
            ended=tokens == EOS,
        )
        found = select(over, found, longer)
        covered = draws.covered
        if self.settings.ranking.coverage_penalty:
            covered += jnp.where(over[..., None], 0, seen)
        done = found.ended.all(axis=1) | (position + 1 >= sources.row_limits())
        return Draws(jnp.where(done, position, position + 1), found, covered, done, spelled), None

    def finish(self, draws: Draws, sources: Sources) -> Hypotheses:
        """The hypotheses with their scores."""
        found, lengths = draws.found, jnp.maximum(draws.found.lengths, 1)
        scores = self.settings.ranking.scores(found.log_probs, lengths, draws.covered, sources.tokens.segments)
        return select(found.lengths > 0, found._replace(scores=scores), no_hypotheses(*found.tokens.shape))
