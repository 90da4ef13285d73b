"use strict";
// Matrices, row by row. Weights are float32 as the model has them; everything computed from them is float64, so that
// sums in another order than JAX's differ from its float32 no more than these differ from the exact value.

/** @typedef {{ rows: number, width: number, data: Float64Array }} Matrix */
/** @typedef {{ kernel: Float32Array, bias: Float32Array }} Dense A row of the kernel for each output. */
/** @typedef {{ scale: Float32Array, bias: Float32Array }} Norm */

/**
 * @param {number} rows
 * @param {number} width
 * @returns {Matrix}
 */
function zeros(rows, width) {
  return { rows, width, data: new Float64Array(rows * width) };
}

/**
 * A view of one row, which shares its numbers.
 * @param {Matrix} x
 * @param {number} row
 */
function rowOf(x, row) {
  return x.data.subarray(row * x.width, (row + 1) * x.width);
}

/**
 * @param {Float64Array[]} rows
 * @returns {Matrix}
 */
function stack(rows) {
  const stacked = zeros(rows.length, rows[0].length);
  rows.forEach((row, index) => rowOf(stacked, index).set(row));
  return stacked;
}

/**
 * The product of each row of x with each row of the kernel.
 * @param {Matrix} x
 * @param {Float32Array} kernel
 */
function product(x, kernel) {
  const found = zeros(x.rows, kernel.length / x.width);
  let row = 0;
  for (; row + 4 <= x.rows; row += 4) multiplyFourRows(x, kernel, found, row);
  for (; row < x.rows; row++) multiplyRow(x, kernel, found, row);
  return found;
}

/**
 * Four rows at a time: each weight is read once for all of them.
 * @param {Matrix} x
 * @param {Float32Array} kernel
 * @param {Matrix} found
 * @param {number} row
 */
function multiplyFourRows({ data, width }, kernel, found, row) {
  const [first, second, third, fourth] = [0, 1, 2, 3].map((next) => (row + next) * width);
  for (let output = 0; output < found.width; output++) {
    let [a, b, c, d] = [0, 0, 0, 0];
    for (let i = 0, place = output * width; i < width; i++, place++) {
      const weight = kernel[place];
      a += weight * data[first + i];
      b += weight * data[second + i];
      c += weight * data[third + i];
      d += weight * data[fourth + i];
    }
    [a, b, c, d].forEach((sum, next) => {
      found.data[(row + next) * found.width + output] = sum;
    });
  }
}

/**
 * One row: four outputs at a time, whose sums do not wait for each other.
 * @param {Matrix} x
 * @param {Float32Array} kernel
 * @param {Matrix} found
 * @param {number} row
 */
function multiplyRow({ data, width }, kernel, found, row) {
  const start = row * width,
    target = row * found.width;
  let output = 0;
  for (; output + 4 <= found.width; output += 4) {
    let a = 0,
      b = 0,
      c = 0,
      d = 0;
    for (let i = 0, place = output * width; i < width; i++, place++) {
      const value = data[start + i];
      a += value * kernel[place];
      b += value * kernel[place + width];
      c += value * kernel[place + 2 * width];
      d += value * kernel[place + 3 * width];
    }
    found.data[target + output] = a;
    found.data[target + output + 1] = b;
    found.data[target + output + 2] = c;
    found.data[target + output + 3] = d;
  }
  for (; output < found.width; output++) {
    for (let i = 0; i < width; i++) found.data[target + output] += data[start + i] * kernel[output * width + i];
  }
}

/**
 * x W + b
 * @param {Matrix} x
 * @param {Dense} layer
 */
function dense(x, layer) {
  const found = product(x, layer.kernel);
  for (let place = 0; place < found.data.length; place++) found.data[place] += layer.bias[place % found.width];
  return found;
}

/**
 * @param {Matrix} x
 * @param {Matrix} y
 * @returns {Matrix}
 */
function add(x, y) {
  return { ...x, data: x.data.map((value, place) => value + y.data[place]) };
}

/**
 * Layer normalization (Ba et al. 2016).
 * @param {Matrix} x
 * @param {Norm} norm
 * @returns {Matrix}
 */
function layerNorm(x, norm) {
  const found = zeros(x.rows, x.width);
  for (let row = 0; row < x.rows; row++) {
    const values = rowOf(x, row),
      { mean, deviation } = moments(values);
    rowOf(found, row).set(values.map((value, i) => ((value - mean) / deviation) * norm.scale[i] + norm.bias[i]));
  }
  return found;
}

/** @param {Float64Array} values */
function moments(values) {
  const mean = sum(values) / values.length;
  const variance = values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance + 1e-6) };
}

/** @param {ArrayLike<number>} values */
function sum(values) {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
}

/**
 * @param {ArrayLike<number>} x
 * @param {ArrayLike<number>} y
 */
function dot(x, y) {
  let total = 0;
  for (let i = 0; i < x.length; i++) total += x[i] * y[i];
  return total;
}

/**
 * @param {Float64Array} scores
 * @returns {Float64Array}
 */
function softmax(scores) {
  const normalizer = logSumExp(scores);
  return scores.map((score) => Math.exp(score - normalizer));
}

/** @param {Float64Array} values */
function logSumExp(values) {
  let highest = -Infinity,
    total = 0;
  for (let i = 0; i < values.length; i++) highest = Math.max(highest, values[i]);
  for (let i = 0; i < values.length; i++) total += Math.exp(values[i] - highest);
  return highest + Math.log(total);
}

/**
 * The places of the highest values, highest first; of equal ones, the first.
 * @param {Float64Array} values
 * @param {number} count
 * @param {number} [from] places before it are left out
 */
function highest(values, count, from = 0) {
  /** @type {number[]} */
  const places = [];
  for (let place = from; place < values.length; place++) {
    if (places.length === count && !(values[place] > values[places[count - 1]])) continue;
    let rank = Math.min(places.length, count - 1);
    while (rank > 0 && values[place] > values[places[rank - 1]]) rank--;
    places.splice(rank, 0, place);
    places.length = Math.min(places.length, count);
  }
  return places;
}
