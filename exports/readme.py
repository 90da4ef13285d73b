"""The README of an exported model: what it is, how to load it, and how to get the run's translations."""

from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

from common.files import read_json_object
from data.corpus.report import DATA_FILE

CTRANSLATE2 = """# $name

A Transformer that translates from $source to $target, exported to CTranslate2 ($quantization) from a run of Puente.

## Use

    pip install ctranslate2 sentencepiece
    echo "$example" | python translate.py

or, from Python in this folder:

    from translate import Model

    model = Model(compute_type="default", device="cpu")
    print(model.translate(["$example"]))

`translate.py` and `sentences.py`, which has the tokenizer's part, are short enough to be copied into a program.
"""

TRANSFORMERS = """---
library_name: transformers
pipeline_tag: translation
language: [$source, $target]
license: $license_id
---

# $name

A Transformer that translates from $source to $target, exported to transformers from a run of Puente.

## Use

    pip install transformers torch sentencepiece
    echo "$example" | python translate.py

or, from Python in this folder:

    from translate import Model

    print(Model().translate(["$example"]))

or with transformers alone:

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
    found = model.generate(**tokenizer("$tagged", return_tensors="pt"))
    print(tokenizer.decode(found[0], skip_special_tokens=True))

`AutoTokenizer` gives `translate.py`'s tokens, except where a line has a literal `▁`, which it reads as a space, or
begins with something like `>>es<<`, which it takes for the code of a language.
"""

STABLEHLO = """# $name

A Transformer that translates from $source to $target, exported to StableHLO from a run of Puente.

## Use

    pip install jax flatbuffers sentencepiece
    echo "$example" | python translate.py

or, from Python in this folder:

    from translate import Model

    print(Model().translate(["$example"]))

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
USE = {"ct2": CTRANSLATE2, "hf": TRANSFORMERS, "stablehlo": STABLEHLO}


def write_readme(folder: Path, form: str, facts: dict[str, str]) -> None:
    """Write the README of a format; ``facts`` are what its template names."""
    search = "\n".join(wrap(facts["search"], WIDTH, break_long_words=False, break_on_hyphens=False))
    text = Template(USE[form] + COMMON).substitute(facts | {"search": search})
    (folder / "README.md").write_text(text, encoding="utf-8")


def describe_data(run_dir: Path) -> str:
    """A line for each training source of the run, without its folder."""
    sources = read_json_object(run_dir / DATA_FILE).get("files", {}).get("train", [])
    lines = [f"- {nameless(each['file'])}: {each['pairs']:,} pairs, SHA-256 {each['sha256']}" for each in sources]
    return "\n".join(["Trained on:", "", *lines])


def nameless(file: str) -> str:
    return Path(file).name if Path(file).is_absolute() else file


def describe_scores(reports: list[dict[str, Any]]) -> str:
    """A line for each report of the run: BLEU and chrF with their signatures."""
    lines = [
        f"- {Path(str(each['test_set'])).name}: BLEU {each['bleu']:.2f} ({each['signature']}), "
        f"chrF {each['chrf']:.2f} ({each['chrf_signature']}), step {each['step']}"
        for each in reports
    ]
    return "\n".join(lines) or "The run has no scores yet."


def with_code(language: str, text: str) -> str:
    """A line for AutoTokenizer: after the code of the language to translate into, if the model has both directions."""
    return f">>{language}<<{text}"
