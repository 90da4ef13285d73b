"""A real lack of memory, with the advice that fits what the program was doing."""

import resource

import pytest

import eval as eval_program
import train
from scripts import score, translate
from training.run.corpus import load_tokenizer

MANY = "decoding.batch_sentences=2147483647"
SENTENCE = b"Tom eats here today there now."
PAIRS = b"Tom\tTom\n" + SENTENCE + b"\tTom\n"
TRAINING = "make data.batch_rows, data.row_length or the model smaller, or training.accumulation larger; dry_run=true"


@pytest.fixture(autouse=True)
def bounded():
    """No address space above 128 GiB, whatever the machine has; each test asks for more in one array."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**37, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize(
    ("program", "overrides", "text", "advice"),
    [
        (translate, [], SENTENCE, "decoding.batch_sentences or decoding.beam_size smaller"),
        (translate, ["decoding.search=sample"], SENTENCE, "decoding.batch_sentences or decoding.candidates smaller"),
        (eval_program, [], b"", "decoding.batch_sentences or decoding.beam_size smaller"),
        (score, [], PAIRS, "decoding.batch_sentences smaller, or leave out pair 2, of {tokens} tokens"),
    ],
)
def test_decoding_advises_to_decode_less_at_once(run_dir, run_main, program, overrides, text, advice):
    code, out, err = run_main(program.main, run_dir, MANY, *overrides, text=text)
    tokens = len(load_tokenizer(run_dir).encode([SENTENCE.decode()])[0]) + 1
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: out of memory (Unable to allocate ")
    assert err.endswith(f"): make {advice.format(tokens=tokens)}\n")


def test_training_advises_to_train_on_less_at_once(small_experiment, run_main, tmp_path):
    code, _, err = run_main(train.main, small_experiment, f"run_dir={tmp_path / 'run'}", "data.batch_rows=2000000000")
    assert (code, err.count("\n")) == (2, 1) and f"): {TRAINING}" in err


@pytest.mark.slow
def test_a_validation_advises_to_decode_less_at_once(small_experiment, run_main, tmp_path):
    code, out, err = run_main(train.main, small_experiment, f"run_dir={tmp_path / 'run'}", "training.steps=1", MANY)
    assert (code, err.count("\n")) == (2, 1) and "step 0 of 1" in out
    assert err.endswith("): make decoding.batch_sentences or decoding.beam_size smaller\n")
