"""What a search does, as one static argument of its compiled function."""

from dataclasses import dataclass, field

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


@dataclass(frozen=True)
class Ranking:
    """The score of a hypothesis: log P(Y) / divisor(|Y|) + coverage, where |Y| includes EOS.

    The divisor is ((5 + |Y|) / 6)^α with normalization "gnmt" (Wu et al. 2016, equation 14), |Y|^α with "length".
    """

    normalization: str = "gnmt"
    length_penalty: float = 1.0  # α; 0: hypotheses are compared by their log-probabilities
    coverage_penalty: float = 0.0  # β of equation 14; 0: coverage is not computed

    def divisor(self, lengths: Int[Array, "*rows"]) -> Float[Array, "*rows"]:
        """The divisor of log-probabilities, which never decreases as hypotheses grow."""
        bases = {"gnmt": (5 + lengths) / 6, "length": lengths / 1.0}[self.normalization]
        return jnp.asarray(bases**self.length_penalty, jnp.float32)

    def scores(
        self,
        log_probs: Float[Array, "B C"],
        lengths: Int[Array, "B C"],
        covered: Float[Array, "B C S"],
        source_segments: Int[Array, "B S"],
    ) -> Float[Array, "B C"]:
        """The scores of hypotheses; ``covered`` is their attention to each source token, summed over all steps."""
        scores = log_probs / self.divisor(lengths)
        if not self.coverage_penalty:
            return scores
        # β Σ log(min(covered, 1)) over the source tokens: at most 0, when every token is covered.
        seen = jnp.log(jnp.clip(covered, 1e-9, 1.0))
        return scores + self.coverage_penalty * jnp.where(source_segments[:, None] != 0, seen, 0).sum(axis=-1)


@dataclass(frozen=True)
class Sampling:
    """The distribution that tokens are drawn from: probabilities to the power 1 / temperature, then truncated."""

    temperature: float = 1.0
    top_k: int = 0  # only the k most likely tokens (Fan et al. 2018); 0: all
    top_p: float = 1.0  # only the most likely tokens with this total probability (Holtzman et al. 2020)


@dataclass(frozen=True)
class SearchSettings:
    """The search "sample" draws ``count`` translations from ``sampling``; "beam" finds the ``count`` best."""

    max_length: int  # the room for a translation, in tokens including EOS
    beam_size: int = 1  # 1: greedy
    count: int = 1
    ranking: Ranking = field(default_factory=Ranking)
    search: str = "beam"
    sampling: Sampling = field(default_factory=Sampling)
    rows: int = 0  # sentences searched at once, while others wait; 0: all
