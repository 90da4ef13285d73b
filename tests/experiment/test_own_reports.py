"""What a score belongs to, by a run's config."""

import pytest

from configs.load import load_config
from experiment.own_reports import conditions_of


@pytest.mark.parametrize(
    "override",
    [
        "data.columns=[es,en]",
        "data.malformed=skip",
        "model.matmul_dtype=bfloat16",
        "decoding.beam_size=1",
        "decoding.checkpoint=latest",
        "decoding.ensemble=[other]",
    ],
)
def test_every_setting_of_eval_py_is_part_of_the_conditions(small_experiment, override):
    plain, changed = (conditions_of(load_config(small_experiment, each), "ab" * 32) for each in ([], [override]))
    assert changed != plain and changed.digest() != plain.digest()


def test_places_are_not(small_experiment):
    plain, moved = (
        conditions_of(load_config(small_experiment, each), "ab" * 32)
        for each in ([], ["data.root=/elsewhere", "data.test=copy.tsv", "data.batch_rows=4"])
    )
    assert moved == plain
