"""The right results of the parts, computed by their definitions in float64 NumPy."""

from functools import partial

import ml_dtypes  # noqa: F401  (makes NumPy recognise the name bfloat16)
import numpy as np
from jaxtyping import Bool, Float, Int

from training.muon import COEFFICIENTS


def square_rows(rows: Float[np.ndarray, "rows 3"]) -> np.ndarray:
    return 3 * rows.astype(np.float64).sum(axis=1) ** 2


def attention_and_gradients(
    query: Float[np.ndarray, "B N T H"],
    key: Float[np.ndarray, "B G S H"],
    value: Float[np.ndarray, "B G S U"],
    cotangent: Float[np.ndarray, "B N T U"],
    visible: Bool[np.ndarray, "B T S"],
) -> dict[str, np.ndarray]:
    """softmax(q kᵀ / √H) v (Vaswani et al. 2017, equation 1), and the gradients of its product with ``cotangent``."""
    query, key, value, cotangent = (array.astype(np.float64) for array in (query, key, value, cotangent))
    groups, scale = key.shape[1], query.shape[-1] ** -0.5
    repeats = query.shape[1] // groups
    key, value = (np.repeat(array, repeats, axis=1) for array in (key, value))
    scores = np.where(visible[:, None], scale * query @ key.swapaxes(2, 3), -np.inf)
    exponentials = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e300))
    weights = exponentials / np.maximum(exponentials.sum(axis=-1, keepdims=True), 1e-300)  # none for padding
    pulled = cotangent @ value.swapaxes(2, 3)
    of_scores = scale * weights * (pulled - (weights * pulled).sum(axis=-1, keepdims=True))

    def of_groups(gradient: np.ndarray) -> np.ndarray:
        return gradient.reshape(len(gradient), groups, repeats, *gradient.shape[2:]).sum(axis=2)

    q, k, v = of_scores @ key, of_scores.swapaxes(2, 3) @ query, weights.swapaxes(2, 3) @ cotangent
    return {"output": weights @ value, "q": q, "k": of_groups(k), "v": of_groups(v)}


def product_and_gradients(
    x: Float[np.ndarray, "B T D"], matrix: Float[np.ndarray, "D F"], cotangent: Float[np.ndarray, "B T F"], dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, matrix, cotangent = (operand(array, dtype) for array in (x, matrix, cotangent))
    return x @ matrix, cotangent @ matrix.T, np.einsum("BTD,BTF->DF", x, cotangent, optimize=True)


def loss_and_gradients(
    x: Float[np.ndarray, "B T D"],
    table: Float[np.ndarray, "V D"],
    labels: Int[np.ndarray, "B T"],
    smoothing: float,
    dtype: str,
) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """Cross-entropy of the logits x · table against smoothed labels, and its gradients, one row at a time."""
    x, table = operand(x, dtype), operand(table, dtype)
    total, of_x, of_table = 0.0, np.zeros(x.shape), np.zeros(table.shape)
    for row, (outputs, label) in enumerate(zip(x, labels, strict=True)):
        logits = outputs @ table.T
        log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        wanted = np.full(logits.shape, smoothing / len(table))
        wanted[np.arange(len(label)), label] += 1 - smoothing
        total -= (wanted * log_probs).sum()
        difference = operand(np.exp(log_probs) - wanted, dtype)
        of_x[row], of_table = difference @ table, of_table + difference.T @ outputs
    return total, (of_x, of_table)


def orthogonalized(matrix: Float[np.ndarray, "rows columns"]) -> np.ndarray:
    """Iterations of Polar Express, rounded to bfloat16 where Muon rounds."""
    if matrix.shape[0] > matrix.shape[1]:
        return orthogonalized(matrix.T).T
    rounded = partial(operand, dtype="bfloat16")
    x = rounded(matrix / np.linalg.norm(matrix.astype(np.float64)))
    for a, b, c in COEFFICIENTS:
        squared = rounded(x @ x.T)
        x = rounded(a * x + rounded(b * (x @ x.T) + c * squared @ squared) @ x)
    return x


def operand(array: np.ndarray, dtype: str) -> np.ndarray:
    """An operand of a product, in float64 but rounded to its dtype."""
    return array.astype(np.float32).astype(dtype).astype(np.float64)
