"use strict";
// Attention of one query of one head: softmax(q·k / √H) v (Vaswani et al. 2017, section 3.2.1), and its variants.

/**
 * @typedef {object} Config The settings of model/config.py that the page reads, and what follows from them.
 * @property {number} d_model
 * @property {number} num_heads
 * @property {number} groups
 * @property {number} head_dim
 * @property {number} value_width
 * @property {"scaled_dot_product" | "dot_product" | "general" | "additive"} score
 * @property {"sinusoidal" | "learned" | "rotary" | "alibi" | "relative"} positions
 * @property {number} max_positions
 * @property {number} encoder_layers
 * @property {number} decoder_layers
 * @property {"relu" | "gelu" | "silu" | "relu_squared"} activation
 * @property {boolean} final_norm
 */
/**
 * @typedef {object} Projections What attention learns; the config says which of the last four a model has.
 * @property {Dense} query
 * @property {Dense} key
 * @property {Dense} value
 * @property {Dense} output
 * @property {{ weights: Float32Array }} [score]
 * @property {{ scale: Float32Array }} [norm] of each head's queries
 * @property {Dense} [gate]
 * @property {Float32Array} [first_share] of each group's values
 */
/** @typedef {{ keys: Float64Array[], values: Float64Array[] }} Memory A row for each token that queries attend to. */
/**
 * @typedef {object} Attended The inputs, weights and outputs of one attention, row by row.
 * @property {Float64Array[]} queries
 * @property {Memory[]} memories
 * @property {Float64Array[][]} weights of each row and head
 * @property {Float64Array[]} gates of each row, a number for each head
 * @property {Float64Array[]} before the residual stream
 * @property {Float64Array[]} after
 */
/** @typedef {Map<string, Attended> | undefined} Watch */

/**
 * The columns of a head.
 * @param {Float64Array} row
 * @param {number} head
 * @param {number} width
 */
function headOf(row, head, width) {
  return row.subarray(head * width, (head + 1) * width);
}

/**
 * The group of keys and values that a head reads.
 * @param {Config} config
 * @param {number} head
 */
function groupOf(config, head) {
  return Math.floor(head / (config.num_heads / config.groups));
}

/**
 * How well a query matches a key, before the division by √H.
 * @param {Config} config
 * @param {Projections} projections
 * @param {number} head
 * @param {Float64Array} query
 * @param {Float64Array} key
 */
function match(config, projections, head, query, key) {
  const width = config.head_dim;
  switch (config.score) {
    case "scaled_dot_product":
    case "dot_product":
      return dot(query, key);
    case "general": {
      // qᵀ W k
      const matrix = learned(projections).subarray(head * width * width, (head + 1) * width * width);
      return query.reduce(
        (total, value, i) => total + value * dot(matrix.subarray(i * width, (i + 1) * width), key),
        0,
      );
    }
    case "additive": {
      // v·tanh(q + k)
      const vector = learned(projections).subarray(head * width, (head + 1) * width);
      return vector.reduce((total, value, i) => total + value * Math.tanh(query[i] + key[i]), 0);
    }
    default:
      throw new Error(`model.score=${config.score}`);
  }
}

/** @param {Projections} projections */
function learned({ score }) {
  if (!score) throw new Error("the score has no parameters");
  return score.weights;
}

/**
 * Queries or keys, normalized for each head to a root mean square of 1, then multiplied by its scale (Henry et al.
 * 2020).
 * @param {Float64Array} row
 * @param {number} width of a head
 * @param {Float32Array} [scales] none for keys
 */
function normalized(row, width, scales) {
  const factors = Array.from({ length: row.length / width }, (_, head) => {
    const own = headOf(row, head, width);
    return (scales?.[head] ?? 1) / Math.sqrt(dot(own, own) / width + 1e-6);
  });
  return row.map((value, i) => value * factors[Math.floor(i / width)]);
}

/**
 * (1 - λ) V + λ V₁, with V₁ of the stack's first block and λ learned for each group (Zhou et al. 2024).
 * @param {Float64Array} own
 * @param {Float64Array} first
 * @param {Float32Array} shares
 */
function mixed(own, first, shares) {
  const width = own.length / shares.length;
  return own.map((value, i) => {
    const share = shares[Math.floor(i / width)];
    return (1 - share) * value + share * first[i];
  });
}

/**
 * The factor of each head's output in each row of x: a sigmoid (Qiu et al. 2025), or 1 without gates.
 * @param {Projections} projections
 * @param {Matrix} x
 * @param {number} heads
 */
function gatesOf({ gate }, x, heads) {
  const found = gate ? dense(x, gate) : zeros(x.rows, heads);
  found.data = found.data.map((value) => (gate ? 1 / (1 + Math.exp(-value)) : 1));
  return found;
}

/**
 * What the score is divided by.
 * @param {Config} config
 * @param {Changes} changes
 */
function divisorOf(config, changes) {
  return config.score === "scaled_dot_product" && !changes.unscaled ? Math.sqrt(config.head_dim) : 1;
}

/**
 * The weights of a query's keys. Where a reader sets some, the others share the rest as before.
 * @param {Float64Array} scores
 * @param {Changes} changes
 * @param {string} name of the place, the head and the query
 */
function weightsOf(scores, changes, name) {
  const wanted = Array.from(scores, (_, key) => changes.weights[`${name}.${key}`]);
  const total = wanted.reduce((all, weight) => all + (weight ?? 0), 0);
  if (scores.length === 1 || wanted.every((weight) => weight === undefined)) return softmax(scores);
  // A softmax of their own: beside a score that is far above theirs, their weights would be rounded to zero.
  const others = softmax(scores.filter((_, key) => wanted[key] === undefined));
  const rest = Math.max(0, 1 - total),
    divisor = others.length ? Math.max(1, total) : total || 1;
  let place = 0;
  return scores.map((_, key) => {
    const weight = wanted[key];
    return weight === undefined ? rest * others[place++] : weight / divisor;
  });
}

/**
 * The weighted sum of the values' columns that a head reads.
 * @param {Config} config
 * @param {number} head
 * @param {Float64Array} weights
 * @param {Float64Array[]} values
 */
function weightedSum({ num_heads, groups, value_width: width }, head, weights, values) {
  const total = new Float64Array(width),
    start = Math.floor(head / (num_heads / groups)) * width;
  values.forEach((value, key) => {
    for (let i = 0; i < width; i++) total[i] += weights[key] * value[start + i];
  });
  return total;
}
