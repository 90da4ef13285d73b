"""Tests run on the CPU, offline, and leave nothing in the home folder. Set before anything imports jax or datasets."""

import os
import tempfile

from hypothesis import settings

_cache = tempfile.TemporaryDirectory(prefix="puente-tests-")  # removed when the test process ends

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # JAX_PLATFORMS=cuda make test runs them on a GPU
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = _cache.name
os.environ["HF_DATASETS_CACHE"] = os.path.join(_cache.name, "datasets")

# The same examples on every run, and no limit of time for one of them: machines are shared.
settings.register_profile("puente", derandomize=True, deadline=None)
settings.load_profile("puente")
