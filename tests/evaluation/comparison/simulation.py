"""How often a comparison finds a difference, where seeds matter: python -m tests.evaluation.comparison.simulation

Each trial draws a test set and the runs of two systems, and asks whether they differ. Sentences come in groups of equal
difficulty; a seed moves all words of a run, and its words of each group. Printed is the share of trials with a verdict,
by the runs of each system and by their true difference; 0 is the error rate.
"""

from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from evaluation.comparison.significance import Effects, Statistics, difference, pool, randomisation_p

Runs = list[Statistics]
LENGTHS, ORDERS = (4, 12), (1, 2, 3, 4)
PER_BLEU = 11.5  # of the margin, as ``describe`` shows


@dataclass(frozen=True)
class World:
    """Standard deviations of what varies by chance, in a word's margin: it is right where its margin is above 0."""

    groups: int = 250
    per_group: int = 2
    difficulty: float = 1.0  # of groups
    seed: float = 0.025  # of a run
    groups_of_run: float = 0.2  # of each group in a run
    words_of_run: float = 0.3  # of each word in a run
    groups_of_system: float = 0.0  # of each group in all runs of a system

    def draw(self, rng: np.random.Generator, runs: int, gain: float) -> tuple[Runs, Runs, np.ndarray]:
        """The runs of two systems, of which the second's margins are larger by ``gain``, and the groups."""
        groups = np.repeat(np.arange(self.groups), self.per_group)
        lengths = rng.integers(*LENGTHS, len(groups))
        words = rng.logistic(size=(len(groups), LENGTHS[1]))
        margins = 3 + words + rng.normal(0, self.difficulty, self.groups)[groups, None]
        systems = []
        for shift in (0.0, gain):
            moved = margins + shift + rng.normal(0, self.groups_of_system, self.groups)[groups, None]
            systems.append([self._run(rng, moved, groups, lengths) for _ in range(runs)])
        return systems[0], systems[1], groups

    def _run(
        self, rng: np.random.Generator, margins: np.ndarray, groups: np.ndarray, lengths: np.ndarray
    ) -> Statistics:
        """sacreBLEU's counts of translations with one reference each."""
        moved = rng.normal(0, self.seed) + rng.normal(0, self.groups_of_run, self.groups)[groups, None]
        right = margins + moved + rng.normal(0, self.words_of_run, margins.shape) > 0
        right &= np.arange(LENGTHS[1]) < lengths[:, None]
        windows = [np.lib.stride_tricks.sliding_window_view(right, order, axis=1).all(2).sum(1) for order in ORDERS]
        totals = [np.maximum(0, lengths - order + 1) for order in ORDERS]
        return Statistics(BLEU(), np.array([lengths, lengths, *windows, *totals], np.float64).T)


def crossed(base: Runs, other: Runs, groups: np.ndarray) -> float:
    """p of the test over seeds and groups of sentences or, with one run each, over groups."""
    if len(base) == 1:
        return randomisation_p(base[0], other[0], groups, trials=399)
    effects = Effects.of(base, groups), Effects.of(other, groups)
    return difference(*effects, pool(effects)).p


def by_sentences(base: Runs, other: Runs, groups: np.ndarray, trials: int = 399) -> float:
    """p of the former test: sentences are exchanged at random between the systems, in all pairs of runs at once."""
    rng, observed, found = np.random.default_rng(1), fmean(r.score for r in other) - fmean(r.score for r in base), []
    chosen = rng.integers(2, size=(trials, len(groups))).astype(np.float64)
    for one, another in zip(base, other, strict=True):
        moved = chosen @ (another.counts - one.counts)
        found.append(another.scores(another.counts.sum(0) - moved) - one.scores(one.counts.sum(0) + moved))
    return float(((abs(np.mean(found, axis=0)) >= abs(observed)).sum() + 1) / (trials + 1))


def share_found(test, world: World, runs: int, gain: float, trials: int) -> float:
    """The share of trials in which ``test`` has p below 0.05."""
    return fmean(test(*world.draw(np.random.default_rng([trial, runs]), runs, gain)) < 0.05 for trial in range(trials))


def describe(world: World, gain: float = 0.0, trials: int = 200) -> str:
    """Standard deviations of BLEU over seeds, and the mean difference that ``gain`` makes."""
    scores = []
    for trial in range(trials):
        base, other, _ = world.draw(np.random.default_rng(trial), 2, gain)
        scores.append([*(run.score for run in base), fmean(run.score for run in other)])
    one, two, better = np.array(scores).T
    gained = (better - (one + two) / 2).mean()
    return f"BLEU {one.mean():.1f}, SD over seeds {np.std(one - two) / 2**0.5:.2f}, gain {gained:.2f}"


def main() -> None:
    """The tables of docs/comparing.md, in an hour."""
    for world, trials in ((World(), 1000), (World(groups=2000, per_group=1), 300)):
        print(world, describe(world, 1 / PER_BLEU), flush=True)
        for runs in (1, 2, 3, 5, 10):
            alone = replace(world, seed=0.0) if runs == 1 else world  # then the claim is of the two models
            shares = [share_found(crossed, alone, runs, gain / PER_BLEU, trials) for gain in (0.5, 1.0)]
            shares = [share_found(crossed, alone, runs, 0.0, 4 * trials), *shares]
            former = share_found(by_sentences, world, runs, 0.0, trials)
            print(runs, *(f"{share:.1%}" for share in shares), f"former test: {former:.1%}", flush=True)


if __name__ == "__main__":
    main()
