"""The road from the training step to the softmax is the one that docs/attention.md lists."""

import inspect
import re
from pathlib import Path

import jax
import numpy as np

import attention.head
from data.batches.packing import Batch
from model.config import ModelConfig
from model.transformer import build
from training.config import TrainingConfig
from training.state import state_shapes
from training.step import make_train_step

ROOT = Path(__file__).parents[1]
HEADING = "The road from train.py to the softmax"
CONFIG = ModelConfig(d_model=8, num_heads=2, head_dim=4, d_ff=8, encoder_layers=1, decoder_layers=1)
TRAINING, VOCAB = TrainingConfig(steps=1), 10


def listed_road() -> list[tuple[str, str]]:
    """File and function of every line of the list under the heading."""
    section = (ROOT / "docs/attention.md").read_text(encoding="utf-8").split(HEADING, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\d+\. \[?`([\w/]+\.py)`\S*: `([\w.]+)`", section, re.MULTILINE)


def project_functions() -> list[tuple[str, str]]:
    """File and function of every caller in the project's own code, outermost first."""
    frames = [frame for frame in inspect.stack() if Path(frame.filename).is_relative_to(ROOT)]
    road = [
        (Path(frame.filename).relative_to(ROOT).as_posix(), frame.frame.f_code.co_qualname.split("<locals>.")[-1])
        for frame in reversed(frames)
    ]
    outside = ("tests/", ".venv/", ".venv-aot/", ".venv-torch/")
    return [(file, function) for file, function in road if not file.startswith(outside) and "<" not in function]


def test_the_listed_road_is_the_one_that_a_training_step_takes(monkeypatch):
    roads = []
    softmax_over_keys = attention.head.softmax_over_keys

    def recorded(scores, visible):
        roads.append([*project_functions(), ("attention/head.py", "softmax_over_keys")])
        return softmax_over_keys(scores, visible)

    monkeypatch.setattr(attention.head, "softmax_over_keys", recorded)
    train_step = make_train_step(build(CONFIG, VOCAB), TRAINING)
    batch = Batch(*(np.ones((2, 4), np.int32) for _ in Batch._fields))
    jax.eval_shape(train_step, state_shapes(CONFIG, TRAINING, VOCAB), batch)

    encoder, decoder, encoder_decoder = roads
    assert decoder == encoder_decoder
    road = listed_road()
    assert [step for step in road if step in encoder] == encoder
    assert [step for step in road if step in decoder] == decoder
    assert set(road) == {*encoder, *decoder}
