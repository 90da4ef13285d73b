"""Turn manythings.org's English–Spanish sentence pairs into the leak-free files of the tatoeba configs.

Download spa-eng.zip from https://www.manythings.org/anki/, unpack it and run: python scripts/prepare_tatoeba.py spa.txt
The held-out pairs are the ones on which Puente's own scores are measured, as far as your download has them. They are
identified by their hashes (data/tatoeba_held_out.txt). Other pairs that share a sentence with them are left out.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from cli.command_line import Parser, path
from common.errors import UserError, exit_on_user_error
from common.files import sha256, write_atomically
from data.config import DataConfig
from data.corpus.splits import find_overlap, refuse_overlap, stable_hash, without_shared
from data.pairs import Pairs, as_tsv, fold, normalise
from data.sources.table import read_table
from data.sources.text import RowReader

HELD_OUT = Path(__file__).parents[1] / "data" / "tatoeba_held_out.txt"


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    columns = "spa.txt as downloaded: English, Spanish and attribution, separated by tabs"
    parser.add_argument("file", type=Path, help=columns)
    parser.add_argument("--to", type=path, default=Path("corpora/tatoeba-en-es"), help="folder to write (%(default)s)")
    arguments = parser.parse_args()
    prepare_tatoeba(arguments.file, arguments.to)


def prepare_tatoeba(file: Path, folder: Path) -> None:
    """Write ``train.tsv``, ``valid.tsv`` and ``test.tsv`` into the folder, and print their sizes."""
    if not file.is_file() or file.suffix == ".zip":
        raise UserError(f"there is no text file {file}; unpack spa-eng.zip of manythings.org first")
    reader = RowReader(read_table(DataConfig(malformed="skip"), file))
    distinct = dict.fromkeys((normalise(english), normalise(spanish)) for english, spanish in reader)
    pairs = Pairs([en for en, es in distinct if en and es], [es for en, es in distinct if en and es])
    splits = split_pairs(pairs)
    refuse_overlap(find_overlap(splits), allowed=[])  # the check of every training run
    print(f"{file}  {reader.report.rows} rows, {reader.report.malformed} malformed, {len(pairs)} distinct pairs")
    for name, part in splits.items():
        path, content = folder / f"{name}.tsv", as_tsv(part)
        write_atomically(path, content)
        counts = f"{len(set(part.sources))} English and {len(set(part.targets))} Spanish sentences"
        print(f"{path}  {len(part)} pairs, {counts}, sha256 {sha256(content)}")
    left_out = len(pairs) - sum(map(len, splits.values()))
    print(f"left out  {left_out} pairs that share a sentence with a held-out one")
    print("overlap   none between the files, case and punctuation ignored")
    print(f"\nnext      python train.py configs/tatoeba-small.yaml data.root={folder}")


def split_pairs(pairs: Pairs) -> dict[str, Pairs]:
    """The pairs by split, in the order of their hashes, which does not depend on the download."""
    rows = (line.split() for line in HELD_OUT.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    held_out = {key: split for split, key in rows}
    keys = [key_of(en, es) for en, es in zip(pairs.sources, pairs.targets, strict=True)]
    order = sorted(range(len(pairs)), key=lambda index: (keys[index], pairs.sources[index], pairs.targets[index]))
    chosen = ([index for index in order if held_out.get(keys[index]) == split] for split in (None, "valid", "test"))
    train, valid, test = map(pairs.take, chosen)
    if len(test) == 0:
        raise UserError("none of the held-out pairs is in this file; is it manythings.org's spa.txt, English first?")
    valid = without_shared(valid, [test])
    return {"train": without_shared(train, [valid, test]), "valid": valid, "test": test}


def key_of(english: str, spanish: str) -> str:
    """A hash that identifies a held-out pair by its sentences, ignoring case and punctuation."""
    return stable_hash(f"{fold(english)}\t{fold(spanish)}")


if __name__ == "__main__":
    main()
