"""What is made in the background is made beside what follows, and its result or exception is not lost."""

import threading

import jax
import pytest

from training.devices.compilation import in_background


def test_it_is_made_beside_what_follows():
    told = threading.Event()
    result = in_background(told.wait, 60)
    told.set()  # never reached if it were made at once
    assert result.result() is True


def test_an_exception_is_raised_where_the_result_is_asked_for():
    result = in_background(int, "one")
    with pytest.raises(ValueError, match="invalid literal"):
        result.result()


def test_with_several_processes_it_is_made_at_once(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert in_background(pow, 2, 3).done()
