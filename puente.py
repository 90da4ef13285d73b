"""Puente in Python: load a trained run, translate, score translations, look at attention, evaluate and compare.

See docs/python.md for examples. User mistakes raise ``puente.Error`` with a one-line message.
"""

import json
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

HOME = Path(__file__).resolve().parent


def find_intruder(name: str) -> str:
    """The path of a foreign module that was imported under the name of one of Puente's; empty if there is none."""
    module = sys.modules.get(name)
    place = [*getattr(module, "__path__", []), getattr(module, "__file__", None) or HOME][0]
    return "" if not (HOME / name).is_dir() or Path(place).is_relative_to(HOME) else str(place)


sys.path.insert(0, str(HOME))  # for these imports, so that a data.py or model.py beside a notebook does not shadow ours
try:
    from cli.process import enable_compilation_cache

    enable_compilation_cache()  # before JAX is imported

    from common.errors import UserError as Error
    from common.errors import write_note
    from common.text import in_brief
    from evaluation.attention_view.sentence import AttendedSentence, translate_and_attend
    from evaluation.comparison.compare import Comparison
    from evaluation.comparison.tables import describe
    from evaluation.evaluate import Evaluation
    from evaluation.forced_scores import ForcedScore, score_translations
    from evaluation.n_best import check_count, n_best
    from evaluation.translate import Translation, Translator
    from experiment.evaluate_run import MAY_CHANGE_FOR_SCORES, evaluate_run, keep_report
    from experiment.evaluated_runs import compare_reported, read_reported
    from experiment.load_run import MAY_CHANGE, LoadedRun, load_run
    from training.run.layout import REPORTS
except ImportError as error:
    if intruder := find_intruder((error.name or "").partition(".")[0]):
        problem = f"{intruder} was imported before Puente, which has a module of the same name"
        raise ImportError(f"{problem}: import puente first, or rename that file, and start Python again") from error
    raise
finally:
    sys.path.remove(str(HOME))

__all__ = ["Error", "compare", "describe", "load"]

Name = str | Path
Value = str | int | float  # of a key in the decoding section


@dataclass(frozen=True)
class TrainedRun:
    """A trained run or an ensemble, in one direction, as ``load`` returns it.

    Every method accepts keys of the ``decoding`` section, such as ``beam_size=1``; they apply to that call only. As in
    scripts/translate.py, a "sentence" may be a line with several sentences.
    """

    loaded: LoadedRun
    overrides: Sequence[str]

    def translate(self, sentences: Iterable[str], *, prefix: str = "", **decoding: Value) -> list[Translation]:
        """The best translation of each sentence; all begin with ``prefix``."""
        texts, translator = check_texts(sentences), self._translator(decoding)
        return translator.translate(self.loaded.params, texts, prefix=check_texts([prefix])[0])

    def n_best(self, sentences: Iterable[str], count: int, **decoding: Value) -> list[list[Translation]]:
        """Up to ``count`` distinct translations of each sentence, best first; with sampling, ``count`` samples."""
        texts, translator = check_texts(sentences), self._translator(decoding)
        check_count(count, translator.decoding, "the count")
        candidates = partial(translator.candidates, self.loaded.params)
        return candidates(texts, count) if translator.decoding.draws else n_best(candidates, texts, count)

    def score(self, pairs: Iterable[tuple[str, str]], **decoding: Value) -> list[ForcedScore]:
        """Score existing translations: token log-probabilities for each pair of a source and its translation."""
        checked = [check_texts(pair) for pair in pairs]
        if any(len(pair) != 2 for pair in checked):
            raise Error('a pair is a source and its translation, as in [("Good morning.", "Buenos días.")]')
        both = [(source, target) for source, target in checked]
        return score_translations(self._translator(decoding), self.loaded.params, both) if both else []

    def attention(self, sentence: str, **decoding: Value) -> AttendedSentence:
        """The attention weights of every layer and head, for a sentence and the translation that the search finds.

        In ``weights``, ``encoder`` is [L N S S], ``decoder`` [L N T T] and ``encoder_decoder`` [L N T S]: layer, head,
        query, key. The tokens are in ``labels``. A notebook displays encoder-decoder attention as a table.
        """
        if len(self.loaded.params) > 1:
            raise Error("attention works with one model only: load a single run")
        translator = self._translator({"batch_sentences": 1, **decoding})
        return translate_and_attend(translator, self.loaded.params[0], check_texts([sentence])[0])

    def evaluate(self, test: Name = "", *, output: Name = "", **decoding: Value) -> Evaluation:
        """Reload the run, and translate and score its test set or another one, as eval.py does.

        The report goes to RUN/eval, where ``compare`` finds it, or to the folder ``output``.
        """
        changes = self._changes(decoding) + ([f"data.test={test}"] if test else [])
        run = load_checked(self.loaded.folder, changes, MAY_CHANGE_FOR_SCORES)
        found = evaluate_run(run)
        try:
            keep_report(run, found, Path(output or run.folder / REPORTS))
        except (Error, OSError) as error:  # scoring took long, so do not lose the result
            write_note(f"warning: the report was not saved; output=FOLDER chooses another place: {error}")
        return found.evaluation

    def _translator(self, decoding: dict[str, Value]) -> Translator:
        config = load_checked(self.loaded.folder, self._changes(decoding)).config
        return replace(self.loaded.translator, decoding=config.decoding)

    def _changes(self, decoding: dict[str, Value]) -> list[str]:
        if {"checkpoint", "ensemble"} & decoding.keys():
            raise Error("puente.load chooses the checkpoint, and the runs of an ensemble")
        return [*self.overrides, *(f"decoding.{key}={value}" for key, value in decoding.items())]


def load(run: Name | Sequence[Name], *, checkpoint: str | int = "", source: str = "", target: str = "") -> TrainedRun:
    """Load the model of a run directory or, given a list, an ensemble of several runs.

    ``checkpoint`` is best (the default), latest, a step, or the name of an average. ``source`` and ``target`` choose
    the direction of a run that was trained in both.
    """
    if not run:
        raise Error("load needs a run directory, or a list of them")
    first, *others = [run] if isinstance(run, str | Path) else run
    ensemble = json.dumps([f"{each}:{checkpoint}".removesuffix(":") for each in others], ensure_ascii=False)
    search = f"decoding.ensemble={ensemble}", f"decoding.checkpoint={checkpoint}"
    given = *search, f"data.source={source}", f"data.target={target}"
    overrides = [each for each in given if not each.endswith("=")]
    loaded = load_checked(Path(first).expanduser(), overrides)
    len(loaded.params)  # read them now, so that errors are raised here
    return TrainedRun(loaded, overrides)


def compare(base: Name, other: Name, *more: Name, test: str = "test") -> Comparison:
    """Compare other runs with ``base``, using the reports that ``evaluate`` or eval.py wrote to RUN/eval/TEST.json.

    A report may be given in place of a run. Nothing is translated. ``describe`` formats the result as text.
    """
    return compare_reported([read_reported(str(each), test) for each in (base, other, *more)])


def load_checked(folder: Path, overrides: Sequence[str], may_change: Collection[str] = MAY_CHANGE) -> LoadedRun:
    try:
        return load_run(folder, overrides, "puente", may_change)
    except Error as error:
        raise Error(str(error).removeprefix("command line: ")) from None


def check_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list; Error for anything else, such as a single text, and for what UTF-8 cannot encode."""
    checked = list(texts)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in checked):
        raise Error(f'give a list of texts, such as ["Good morning."], not {in_brief(repr(texts))}')
    for text in checked:
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise Error(f"{in_brief(text)} has half a character, which UTF-8 cannot encode")
    return checked
