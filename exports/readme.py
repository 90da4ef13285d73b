"""The README of an exported model: what it is, how to load it, and how to get the run's translations."""

from pathlib import Path
from string import Template
from typing import Any

CTRANSLATE2 = Template("""# $name

A Transformer that translates from $source to $target, exported to CTranslate2 ($quantization) from a run of Puente.

$scores

## Use

    pip install ctranslate2 sentencepiece
    echo "$example" | python translate.py

or, from Python in this folder:

    from translate import Model

    model = Model(compute_type="default", inter_threads=1, intra_threads=2)
    print(model.translate(["$example"]))

`translate.py` needs no other file than those of this folder, and is short enough to be copied into a program.

## The same translations as the run's

$search

The input must be normalised as `translate.py` does it: Unicode NFC, white space collapsed. Lines are translated whole;
the run itself cuts lines of more than $longest tokens at sentence ends. The run never takes `<pad>`, `<unk>` or `<s>`
into a translation; here they are possible, but a trained model gives them next to no probability.

## Checked

$check
""")


def write_readme(path: Path, facts: dict[str, str]) -> None:
    path.write_text(CTRANSLATE2.substitute(facts), encoding="utf-8")


def describe_scores(reports: list[dict[str, Any]]) -> str:
    """A line for each report of the run: BLEU and chrF with their signatures."""
    lines = [
        f"- {Path(str(each['test_set'])).name}: BLEU {each['bleu']:.2f} ({each['signature']}), "
        f"chrF {each['chrf']:.2f} ({each['chrf_signature']}), step {each['step']}"
        for each in reports
    ]
    return "\n".join(lines) or "The run has no scores yet."
