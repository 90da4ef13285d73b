"""python scripts/score.py RUN: given translations, beside what a search says of its own."""

import json
import math

import pytest

from scripts import score
from scripts.translate import main as translate

PROGRAM = "scripts/score.py"


@pytest.mark.slow
def test_a_searchs_own_translations_get_the_searchs_scores(run_dir, run_main):
    """They are spelled as the tokenizer spells them, and end: a beam of all tokens has EOS after the given ones."""
    lines, limits = ["Tom runs here.", "Ana eats."], ["decoding.max_length_factor=0", "decoding.max_length_extra=10"]
    search = ["--scores", "--prefix", "Ana runs.", "decoding.beam_size=297", *limits]
    found = run_main(translate, run_dir, *search, text="\n".join(lines).encode())[1].splitlines()
    own = [json.loads(line)["translations"][0] for line in found]
    assert [(each["text"], each["ended"]) for each in own] == [("Ana runs.", True)] * 2
    text = "".join(f"{line}\tAna runs.\n" for line in lines)
    facts = [json.loads(line) for line in run_main(score.main, run_dir, text=text.encode())[1].splitlines()]
    for key in ("log_prob", "score"):
        assert [each[key] for each in facts] == pytest.approx([each[key] for each in own], rel=1e-5)


@pytest.mark.slow
def test_a_pair_is_scored_as_a_whole_an_empty_one_as_eos_alone_and_standard_error_has_the_totals(run_dir, call):
    pairs = [("Tom runs here.", "Ana runs."), ("Tom", ""), ("Tom " * 90, "Ana")]
    done = call(PROGRAM, run_dir, text="".join(f"{source}\t{target}\n" for source, target in pairs).encode())
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["line"] for each in facts] == [1, 2, 3]
    for each in facts:
        assert len(each["tokens"]) == len(each["token_log_probs"])
        assert each["tokens"][-1] == "</s>"
        assert math.isclose(each["log_prob"], sum(each["token_log_probs"]), rel_tol=1e-6)
        assert math.isclose(each["perplexity"], math.exp(-each["log_prob"] / len(each["tokens"])), rel_tol=1e-6)
        assert math.isclose(each["score"], each["log_prob"] / ((5 + len(each["tokens"])) / 6), rel_tol=1e-5)
    assert len(facts[1]["tokens"]) == 1
    total, tokens = sum(each["log_prob"] for each in facts), sum(len(each["tokens"]) for each in facts)
    err = done.stderr.decode()
    assert f"3 translations, {tokens} tokens" in err and f"{math.exp(-total / tokens):.4f} per token" in err


def test_a_warning_of_exchanged_columns_comes_first(run_dir, run_main):
    text = "".join(f"El gato {number} está en la mesa.\tThe cat is on the table.\n" for number in range(20))
    _, out, err = run_main(score.main, run_dir, text=text.encode())
    assert out.count("\n") == 20
    warning = err.partition("\n")[0]
    assert warning.startswith("warning: standard input: source and target look exchanged: in 20 of 20 pairs ")
    assert warning.endswith("; if they are, exchange its columns")


def test_mistakes_end_in_one_line_and_code_2(run_dir, run_main):
    for text, message in (
        (b"Tom\tAna\nTom\n", "standard input:2: no tab in the line, not a source, one tab and a translation"),
        (b"Tom\tAn\xe9\n", "standard input:1: invalid UTF-8 at byte 7"),
    ):
        code, out, err = run_main(score.main, run_dir, text=text)
        assert (code, out.count("\n"), err.count("\n")) == (2, text[:-1].count(b"\n"), 1)  # those before are scored
        assert message in err
