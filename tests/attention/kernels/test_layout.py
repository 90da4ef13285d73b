"""Kernels on several devices: each computes its rows and heads, and the whole is what one device computes."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(call):
    """What tests/attention/kernels/meshes.py prints."""
    done = call("tests/attention/kernels/meshes.py")
    return json.loads(done.stdout)


@pytest.mark.parametrize("groups", ["4", "2"])  # key/value heads for 4 devices: 2 are repeated
def test_output_and_gradients_are_those_of_one_device(report, groups):
    one, eight = report[groups]
    for expected, found in zip(one, eight, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
