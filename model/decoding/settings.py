"""What a search does, as one static argument of its compiled function."""

from dataclasses import dataclass, field

from model.decoding.ranking import Ranking


@dataclass(frozen=True)
class Sampling:
    """The distribution that tokens are drawn from: probabilities to the power 1 / temperature, then truncated."""

    temperature: float = 1.0
    top_k: int = 0  # only the k likeliest tokens (Fan et al. 2018); 0: all
    top_p: float = 1.0  # only the likeliest tokens of this total probability (Holtzman et al. 2020)


@dataclass(frozen=True)
class SearchSettings:
    """``sampling`` draws ``count`` translations; else a beam search returns the ``count`` best, or greedy one."""

    max_length: int  # tokens that a translation has room for, EOS included
    beam_size: int = 1
    count: int = 1
    ranking: Ranking = field(default_factory=Ranking)
    sampling: Sampling | None = None
