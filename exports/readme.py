"""The README of an exported model: what it is, how to load it, and how to get the run's translations."""

from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

from common.files import read_json_object
from training.run.layout import DATA


def start(library: str, packages: str) -> str:
    """The beginning that all formats have in common."""
    return f"""# $name

A Transformer that translates from $source to $target, exported to {library} from a run of Puente.

## Use

    pip install {packages} sentencepiece
    echo "$example" | python translate.py

or, from Python in this folder:

    from translate import Model

"""


CTRANSLATE2 = """    model = Model(compute_type="default", device="cpu")
    print(model.translate(["$example"]))

`translate.py` and `sentences.py`, which has the tokenizer's part, are short enough to be copied into a program.
"""

TRANSFORMERS = """    print(Model().translate(["$example"]))

or with transformers alone:

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
    found = model.generate(**tokenizer("$tagged", return_tensors="pt"))
    print(tokenizer.decode(found[0], skip_special_tokens=True))

`AutoTokenizer` gives `translate.py`'s tokens, except where a line has a literal `▁`, which it reads as a space, or
begins with something like `>>es<<`, which it takes for the code of a language.
"""

MODEL_CARD = """---
library_name: transformers
pipeline_tag: translation
language: [$source, $target]
license: $license_id
---

"""

STABLEHLO = """    print(Model().translate(["$example"]))

JAX compiles each program at its first use, for the CPU, NVIDIA GPU or TPU that it finds (`pip install jax[cuda13]` or
`jax[tpu]`). Each takes any number of sentences, after the weights of `weights.npz`:

- `encode`: source tokens [sentences, length], `<pad>` after them, and an array whose length is the room for target
  tokens → a cache.
- `step`: a token of each sentence, their position, the cache → log-probabilities of the next tokens, the new cache.
- `greedy-LENGTH` and, with a beam, `beam-LENGTH`: source tokens [sentences, LENGTH], the most target tokens of each
  sentence → `tokens`, `lengths`, `log_probs`, `scores`, `ended`.

Sources and translations end with `</s>` (3); a translation begins after `<s>` (2); `<pad>` is 0. JAX reads programs of
earlier versions for six months at least: keep the run.
"""

COMMON = """
## Training and scores

$data

Licence: $license.

$scores

## The same translations as the run's

$search

The input must be normalised as `translate.py` does it: Unicode NFC, white space collapsed. Lines are translated whole;
the run itself cuts lines of more than $longest tokens, `</s>` included, at sentence ends. $most are the most.

## Checked

$check
"""

WIDTH = 120  # characters of a line
USE = {
    "ct2": start("CTranslate2 ($quantization)", "ctranslate2") + CTRANSLATE2,
    "hf": MODEL_CARD + start("transformers", "transformers torch") + TRANSFORMERS,
    "stablehlo": start("StableHLO", "jax flatbuffers") + STABLEHLO,
}


def write_readme(folder: Path, form: str, facts: dict[str, str]) -> None:
    """Write the README of a format; ``facts`` are what its template names."""
    search = "\n".join(wrap(facts["search"], WIDTH, break_long_words=False, break_on_hyphens=False))
    text = Template(USE[form] + COMMON).substitute(facts | {"search": search})
    (folder / "README.md").write_text(text, encoding="utf-8")


def describe_data(run_dir: Path) -> str:
    """A line for each training source of the run, without its folder."""
    sources = read_json_object(run_dir / DATA).get("files", {}).get("train", [])
    names = [Path(each["file"]).name if Path(each["file"]).is_absolute() else each["file"] for each in sources]
    pairs = [f"{each['pairs']:,} pairs, SHA-256 {each['sha256']}" for each in sources]
    return "\n".join(["Trained on:", "", *(f"- {name}: {facts}" for name, facts in zip(names, pairs, strict=True))])


def describe_scores(report: dict[str, Any] | None) -> str:
    """The run's BLEU and chrF with their signatures."""
    if report is None:
        return "The run has no scores yet."
    return (
        f"- {Path(str(report['test_set'])).name}: BLEU {report['bleu']:.2f} ({report['signature']}), "
        f"chrF {report['chrf']:.2f} ({report['chrf_signature']}), step {report['step']}"
    )
