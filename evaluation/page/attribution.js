"use strict";
// What the parts of a model say about why it chose a word.

/** @typedef {{ watch: Map<string, Attended>, logProbs: Matrix }} Looked The rows are those of a translation's tokens. */

const STEP = 1e-3; // of central differences

/**
 * Teacher forcing: the decoder reads BOS and all tokens of the translation but the last.
 * @param {Transformer} model
 * @param {number[]} source with EOS
 * @param {number[]} target
 * @returns {Looked}
 */
function look(model, source, target) {
  const watch = watchPlaces(placesOf(model.config));
  const past = model.begin(model.encode(embedSource(model, source), watch));
  return { watch, logProbs: stack(inputsOf(target).map((id) => model.decodeStep([id], [past], watch).data)) };
}

/** @param {number[]} target */
function inputsOf(target) {
  return [BOS, ...target.slice(0, -1)];
}

/**
 * @param {Transformer} model
 * @param {number[]} source
 */
function embedSource(model, source) {
  return model.embed(
    source,
    source.map((_, position) => position),
  );
}

/**
 * The parameters of the attention at a place.
 * @param {Transformer} model
 * @param {Place} place
 */
function projectionsAt(model, { stack, use, layer }) {
  return model.parameters[stack][layer][use];
}

/**
 * The vector that each head adds to the residual stream of each row for each key: the weight, times the value, times
 * the output projection, times the head's gate.
 * @param {Transformer} model
 * @param {Place} place
 * @param {Attended} attended
 * @returns {Float64Array[][][]} of each row, key and head
 */
function addedVectors(model, place, { memories, weights, gates }) {
  const heads = Array.from({ length: model.config.num_heads }, (_, head) => head),
    known = new Map();
  return memories.map((memory, row) =>
    weights[row][0].reduce((keys, _, key) => {
      const value = memory.values[key];
      if (!known.has(value))
        known.set(
          value,
          heads.map((head) => transformed(model, place, head, value)),
        );
      const vectors = heads.map((head) =>
        known.get(value)[head].map((/** @type {number} */ x) => x * weights[row][head][key] * gates[row][head]),
      );
      return [...keys, vectors];
    }, /** @type {Float64Array[][]} */ ([])),
  );
}

/**
 * What a head would add if it attended to one key alone; nothing if the head is cut.
 * @param {Transformer} model
 * @param {Place} place
 * @param {number} head
 * @param {Float64Array} value
 */
function transformed({ config, changes, parameters }, place, head, value) {
  const width = config.value_width,
    { kernel, bias } = parameters[place.stack][place.layer][place.use].output,
    added = new Float64Array(bias.length);
  if (changes.cut.includes(nameOf(place, head))) return added;
  const own = headOf(value, groupOf(config, head), width);
  return added.map((_, output) => dot(own, kernel.subarray((output * config.num_heads + head) * width)));
}

/**
 * Weights times norms (Kobayashi et al. 2020, section 3): the length of what is added for a key, by each head and by
 * all heads together.
 * @param {Transformer} model
 * @param {Place} place
 * @param {Attended} attended
 * @returns {{ heads: number[][][], all: number[][] }} of head, row and key; of row and key
 */
function normsOf(model, place, attended) {
  const added = addedVectors(model, place, attended);
  const heads = Array.from({ length: model.config.num_heads }, (_, head) =>
    added.map((keys) => keys.map((vectors) => Math.hypot(...vectors[head]))),
  );
  return { heads, all: added.map((keys) => keys.map((vectors) => Math.hypot(...total(vectors)))) };
}

/** @param {Float64Array[]} vectors */
function total(vectors) {
  return vectors.reduce((sums, vector) => sums.map((sum, i) => sum + vector[i]));
}

/**
 * The share of the source, against the translation so far, in what the decoder ends up with at each token (after
 * Ferrando et al. 2022): 1 minus the share of the translation.
 *
 * An attention's output y is a sum of vectors: the residual stream and, for each key, what the heads add. A vector p
 * counts with max(0, ‖y‖₁ - ‖y - p‖₁), and all that count share 1. What the decoder's own tokens bring along of the
 * source is followed through its layers. Feed-forward layers are left out.
 * @param {Transformer} model
 * @param {Map<string, Attended>} watch
 */
function sourceShares(model, watch) {
  let shares = /** @type {number[]} */ ([]);
  for (let layer = 0; layer < model.config.decoder_layers; layer++) {
    const own = sharesAt(model, placeOf("decoder", "self_attention", layer), watch, 0);
    shares = own.map((counts, row) => {
      const all = counts.keys.map((share, key) => share + (key === row ? counts.residual : 0));
      return all.reduce((sum, share, key) => sum + share * (shares[key] ?? 0), 0);
    });
    const cross = sharesAt(model, placeOf("decoder", "cross_attention", layer), watch, 1);
    shares = cross.map((counts, row) => counts.residual * shares[row] + sum(counts.keys));
  }
  return shares;
}

/**
 * The shares of the residual stream and of each key in every row.
 * @param {Transformer} model
 * @param {Place} place
 * @param {Map<string, Attended>} watch
 * @param {number} index of the sublayer
 */
function sharesAt(model, place, watch, index) {
  const attended = watch.get(nameOf(place));
  if (!attended) throw new Error(`nobody watched ${nameOf(place)}`);
  const { norm } = model.parameters.decoder[place.layer].residuals[index],
    isPreNorm = model.config.final_norm;
  return addedVectors(model, place, attended).map((keys, row) => {
    const [before, after] = [attended.before[row], attended.after[row]],
      { deviation } = moments(after);
    const output = isPreNorm ? after : rowOf(layerNorm(stack([after]), norm), 0);
    const counts = [before, ...keys.map(total)].map((part) => {
      const mean = isPreNorm ? 0 : sum(part) / part.length;
      const seen = isPreNorm ? part : part.map((x, i) => ((x - mean) / deviation) * norm.scale[i]);
      return Math.max(0, length1(output) - length1(output.map((x, i) => x - seen[i])));
    });
    const whole = sum(counts) || 1;
    return { residual: sum(counts) ? counts[0] / whole : 1, keys: counts.slice(1).map((count) => count / whole) };
  });
}

/** @param {Float64Array} vector */
function length1(vector) {
  return vector.reduce((sum, x) => sum + Math.abs(x), 0);
}

/**
 * The gradient of each token's log-probability by the embedding of a source token, times that embedding. This is the
 * derivative by a factor of the embedding, which central differences give. Stops after every step.
 * @param {Transformer} model
 * @param {number[]} source
 * @param {number[]} target
 * @returns {Generator<void, number[][]>}
 */
function* gradientTimesInput(model, source, target) {
  const embedded = embedSource(model, source),
    pasts = [];
  for (let token = 0; token < source.length; token++) {
    for (const factor of [1 + STEP, 1 - STEP]) {
      const changed = { ...embedded, data: embedded.data.slice() },
        row = rowOf(changed, token);
      row.set(row.map((x) => x * factor));
      pasts.push(model.begin(model.encode(changed)));
      yield;
    }
  }
  const found = [];
  for (const [place, id] of inputsOf(target).entries()) {
    const logProbs = model.decodeStep(
      pasts.map(() => id),
      pasts,
    );
    const of = (/** @type {number} */ row) => rowOf(logProbs, row)[target[place]];
    found.push(source.map((_, token) => (of(2 * token) - of(2 * token + 1)) / (2 * STEP)));
    yield;
  }
  return found;
}
