"""Turn manythings.org's English–Spanish sentence pairs into the leak-free files of the tatoeba configs.

Download spa-eng.zip from https://www.manythings.org/anki/, unpack it, and: python scripts/prepare_tatoeba.py spa.txt
Held out are the pairs that Puente's own figures are measured on, known by their hashes (data/tatoeba_held_out.txt), so
far as your download has them; a pair that shares a sentence with one of them is in none of the files.
"""

import argparse
import hashlib
from pathlib import Path

from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from data.pairs import Pairs, as_tsv, fold, normalise
from data.sources.text import Reading, read_tsv
from data.splits.holdout import hash_of, without
from data.splits.overlap import audit

ROOT = Path(__file__).parents[1]
HELD_OUT = ROOT / "data" / "tatoeba_held_out.txt"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "file", type=Path, help="spa.txt as downloaded: English, Spanish and attribution, split by tabs"
    )
    parser.add_argument("--to", type=Path, default=Path("corpora/tatoeba-en-es"), help="folder to write (%(default)s)")
    arguments = parser.parse_args()
    with exit_on_user_error():
        prepare_tatoeba(arguments.file, arguments.to)


def prepare_tatoeba(file: Path, folder: Path) -> None:
    """Write ``train.tsv``, ``valid.tsv`` and ``test.tsv`` into the folder, and print what is in them."""
    if not file.is_file():
        raise UserError(f"there is no file {file}; unpack spa-eng.zip of manythings.org first")
    reading = Reading(read_tsv(file, malformed="skip"))
    distinct = dict.fromkeys((normalise(english), normalise(spanish)) for english, spanish in reading)
    pairs = Pairs([en for en, es in distinct if en and es], [es for en, es in distinct if en and es])
    splits = split(pairs)
    refuse_leaks(splits)
    print(f"{file}  {reading.report.rows} rows, {reading.report.malformed} malformed, {len(pairs)} distinct pairs")
    for name, part in splits.items():
        print(write_split(folder / f"{name}.tsv", part))
    left_out = len(pairs) - sum(map(len, splits.values()))
    print(f"left out  {left_out} pairs that share a sentence with a held-out one")
    print("overlap   none between the files, case and punctuation ignored")
    print(f"\nnext      python train.py configs/tatoeba-small.yaml data.root={folder}")


def write_split(path: Path, pairs: Pairs) -> str:
    """Write the pairs, English first, and say what the file is."""
    content = as_tsv(pairs.sources, pairs.targets).encode()
    write_atomically(path, content)
    distinct = len(set(pairs.sources)), len(set(pairs.targets))
    digest = hashlib.sha256(content).hexdigest()
    return f"{path}  {len(pairs)} pairs, {distinct[0]} English and {distinct[1]} Spanish sentences, sha256 {digest}"


def split(pairs: Pairs) -> dict[str, Pairs]:
    """The pairs by split, each in the order of their hashes, which is the same for every download."""
    held_out = read_held_out()
    keys = [key_of(en, es) for en, es in zip(pairs.sources, pairs.targets, strict=True)]
    order = sorted(range(len(pairs)), key=lambda index: (keys[index], pairs.sources[index], pairs.targets[index]))
    test = pairs.take([index for index in order if held_out.get(keys[index]) == "test"])
    if len(test) == 0:
        raise UserError("none of the held-out pairs is in this file; is it manythings.org's spa.txt, English first?")
    valid = without(pairs.take([index for index in order if held_out.get(keys[index]) == "valid"]), [test])
    training = pairs.take([index for index in order if keys[index] not in held_out])
    return {"train": without(training, [valid, test]), "valid": valid, "test": test}


def key_of(english: str, spanish: str) -> str:
    """By what a held-out pair is known: a hash of its sentences, case and punctuation ignored."""
    return hash_of(f"{fold(english)}\t{fold(spanish)}")


def read_held_out() -> dict[str, str]:
    """valid or test by the hash of a pair."""
    rows = (line.split() for line in HELD_OUT.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {key: name for name, key in rows}


def refuse_leaks(splits: dict[str, Pairs]) -> None:
    """The audit of every training run, on what is about to be written."""
    leaks = [pair for pair, sides in audit(splits).items() if any(side["shared"] for side in sides.values())]
    if leaks:
        raise UserError(f"splits share sentences: {', '.join(leaks)}")


if __name__ == "__main__":
    main()
