"""A compiler that is wrong is refused."""

import numpy as np
import pytest

from common.errors import UserError
from training.devices import compiler
from training.devices.compiler import ROWS, check_compiler, is_audited, keep_verdict, square_rows


def test_the_rows_that_a_compiler_got_wrong_are_right_here():
    assert float(square_rows(ROWS)[-1]) == pytest.approx(3 * (98_304 + 98_305 + 98_306) ** 2, rel=1e-6)
    check_compiler()


def test_a_wrong_row_is_refused(monkeypatch):
    wrong = np.array(square_rows(ROWS))
    wrong[-1] *= 1.01
    monkeypatch.setattr(compiler, "square_rows", lambda rows: wrong)
    with pytest.raises(UserError, match=r"jaxlib .* computes wrong numbers here \(jax#39103\): install"):
        check_compiler()


def test_what_an_audit_found_is_kept_for_this_compiler_and_its_flags(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not is_audited()
    keep_verdict(["gradients"])
    with pytest.raises(UserError, match=r"check_numbers.py found \(gradients\)"):
        check_compiler()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    assert not is_audited()
    check_compiler()
    keep_verdict([])
    check_compiler()
    assert is_audited()
