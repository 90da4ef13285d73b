"""Calls side by side: the order of their results, and their end."""

import threading
import time

import pytest

from evaluation import side_by_side as module
from evaluation.side_by_side import side_by_side


@pytest.fixture(params=[1, 3])
def count(request, monkeypatch):
    monkeypatch.setattr(module, "workers", lambda: request.param)
    return request.param


def test_results_are_in_the_order_of_the_tasks(count):
    def wait(task):
        time.sleep(0.05 if task == 0 else 0)
        return task, threading.current_thread().name.startswith("search")

    assert list(side_by_side(wait, range(9))) == [(task, count > 1) for task in range(9)]


def test_no_task_begins_after_an_error(count):
    begun = []

    def fail(task):
        begun.append(task)
        time.sleep(0.01)
        raise MemoryError

    with pytest.raises(MemoryError):
        list(side_by_side(fail, range(100)))
    assert len(begun) < 20
