"""What identifies a score, by a run's config."""

import pytest

from configs.load import load_config
from experiment.reports import report_key

SETTINGS = """
data.columns=[es,en] data.malformed=skip model.matmul_dtype=bfloat16 decoding.beam_size=1 decoding.checkpoint=latest
decoding.ensemble=[other]
""".split()


@pytest.mark.parametrize("override", SETTINGS)
def test_every_setting_of_eval_py_is_part_of_the_key(small_experiment, override):
    plain, changed = (report_key(load_config(small_experiment, each), "ab" * 32) for each in ([], [override]))
    assert changed != plain and changed.digest() != plain.digest()


def test_places_are_not(small_experiment):
    plain, moved = (
        report_key(load_config(small_experiment, each), "ab" * 32)
        for each in ([], ["data.root=/elsewhere", "data.test=copy.tsv", "data.batch_rows=4"])
    )
    assert moved == plain
