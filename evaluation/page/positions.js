"use strict";
// Positions of tokens in their sentence, as model/positions.py has them.

const BUCKETS = 32,
  FARTHEST = 128; // of relative positions, as in T5

/**
 * A position times frequencies that fall from 1 towards 1/10000.
 * @param {number} position
 * @param {number} count
 */
function rotationAngles(position, count) {
  return Float64Array.from({ length: count }, (_, i) => position * Math.exp(i * (-Math.log(10000) / count)));
}

/**
 * Sines, then cosines (Vaswani et al. 2017, section 3.5).
 * @param {number} position
 * @param {number} width
 */
function sinusoidalPosition(position, width) {
  const angles = rotationAngles(position, width / 2);
  return [...angles.map(Math.sin), ...angles.map(Math.cos)];
}

/**
 * Rotary positions (Su et al. 2021, section 3.2): components i and i + H/2 of every head are rotated as a pair.
 * @param {Float64Array} row all heads
 * @param {number} position
 * @param {number} width of a head
 */
function rotate(row, position, width) {
  const half = width / 2,
    angles = rotationAngles(position, half),
    rotated = row.slice();
  for (let start = 0; start < row.length; start += width) {
    for (let i = start; i < start + half; i++) {
      const sine = Math.sin(angles[i - start]),
        cosine = Math.cos(angles[i - start]);
      rotated[i] = row[i] * cosine - row[i + half] * sine;
      rotated[i + half] = row[i + half] * cosine + row[i] * sine;
    }
  }
  return rotated;
}

/**
 * Minus the distance times the head's slope (Press et al. 2022, section 3).
 * @param {number} distance
 * @param {number} head counted from 0
 * @param {number} heads
 */
function alibiBias(distance, head, heads) {
  return -(2 ** ((-8 * (head + 1)) / heads)) * Math.abs(distance);
}

/**
 * The bucket of a key ``distance`` after its query, negative if before (Raffel et al. 2020, section 2.1).
 * @param {number} distance
 * @param {boolean} causal
 */
function bucketOf(distance, causal) {
  const count = causal ? BUCKETS : BUCKETS / 2,
    exact = count / 2;
  const steps = causal ? Math.max(-distance, 0) : Math.abs(distance);
  let bucket = Math.min(steps, exact);
  for (let wide = 1; wide < exact; wide++) {
    if (steps >= Math.ceil(exact * (FARTHEST / exact) ** (wide / exact) - 1e-9)) bucket++;
  }
  return !causal && distance > 0 ? bucket + count : bucket;
}
