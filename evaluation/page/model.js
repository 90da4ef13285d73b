"use strict";
// The encoder-decoder Transformer (Vaswani et al. 2017, figure 1), as in model/transformer.py, one sentence at a time.

/**
 * @typedef {{ self_attention: Projections, cross_attention: Projections, feed_forward: { up: Dense, down: Dense, gate?: Dense },
 *   residuals: { norm: Norm }[] }} Block
 */
/**
 * @typedef {object} ModelParameters
 * @property {{ table: Float32Array, positions?: Float32Array }} embedding
 * @property {Dense} [encoder_input] from the embeddings' width to the encoder's
 * @property {Record<number, Block>} encoder
 * @property {Record<number, Block>} decoder
 * @property {Norm[]} final_norms
 * @property {{ table: Float32Array }[]} relative_biases
 */
/**
 * @typedef {object} Past The tokens that a hypothesis has read: what they left in each decoder layer.
 * @property {Memory[]} layers
 * @property {Memory[]} source the encoder's output, projected for each decoder layer
 */

class Transformer {
  /**
   * @param {Config} config
   * @param {ModelParameters} parameters
   * @param {Changes} [changes]
   */
  constructor(config, parameters, changes = UNCHANGED) {
    this.config = config;
    this.parameters = parameters;
    this.changes = changes;
  }

  /**
   * Rows of the table times √D, plus position embeddings.
   * @param {number[]} ids
   * @param {number[]} positions
   */
  embed(ids, positions) {
    const { d_model: width, positions: kind } = this.config,
      { table, positions: learnt } = this.parameters.embedding;
    const x = zeros(ids.length, width);
    ids.forEach((id, row) => {
      const position = positions[row],
        embedded = rowOf(x, row);
      const added =
        kind === "sinusoidal"
          ? sinusoidalPosition(position, width)
          : learnt?.subarray(position * width, (position + 1) * width);
      const scale = id === PAD ? 0 : Math.sqrt(width);
      for (let i = 0; i < width; i++) embedded[i] = table[id * width + i] * scale + (added ? added[i] : 0);
    });
    return x;
  }

  /**
   * The encoder's output for the embeddings of one sentence.
   * @param {Matrix} x
   * @param {Watch} [watch]
   */
  encode(x, watch) {
    const positions = Array.from({ length: x.rows }, (_, position) => position),
      { encoder_input: input } = this.parameters;
    let first = /** @type {Float64Array[] | undefined} */ (undefined);
    if (input) x = dense(x, input);
    for (let layer = 0; layer < this.config.encoder_layers; layer++) {
      const block = this.parameters.encoder[layer];
      x = this.residual(
        block,
        0,
        x,
        (entered) => {
          const memory = this.memoryOf(block.self_attention, entered, positions, first);
          first ??= memory.values;
          const memories = positions.map(() => memory),
            place = placeOf("encoder", "self_attention", layer);
          return this.attend(place, block.self_attention, entered, memories, positions, watch);
        },
        watch?.get(nameOf(placeOf("encoder", "self_attention", layer))),
      );
      x = this.residual(block, 1, x, (entered) => this.feedForward(block, entered));
    }
    return this.config.final_norm ? layerNorm(x, this.parameters.final_norms[0]) : x;
  }

  /**
   * The past of a hypothesis that has read nothing yet.
   * @param {Matrix} encoded
   * @returns {Past}
   */
  begin(encoded) {
    const layers = Array.from({ length: this.config.decoder_layers }, (_, layer) => this.parameters.decoder[layer]);
    return {
      layers: layers.map(() => ({ keys: [], values: [] })),
      source: layers.map((block) => this.memoryOf(block.cross_attention, encoded)),
    };
  }

  /**
   * Each hypothesis reads one more token, which its past then has. Returns the log-probabilities of the next tokens, a
   * row for each hypothesis.
   * @param {number[]} ids
   * @param {Past[]} pasts
   * @param {Watch} [watch]
   */
  decodeStep(ids, pasts, watch) {
    const positions = pasts.map((past) => past.layers[0].keys.length);
    let x = this.embed(ids, positions);
    for (let layer = 0; layer < this.config.decoder_layers; layer++) {
      x = this.decoderBlock(layer, x, pasts, positions, watch);
    }
    if (this.config.final_norm) x = layerNorm(x, this.parameters.final_norms[1]);
    return this.logProbabilities(x);
  }

  /**
   * Self-attention over the past, attention over the source, then a feed-forward network.
   * @param {number} layer
   * @param {Matrix} x
   * @param {Past[]} pasts
   * @param {number[]} positions
   * @param {Watch} [watch]
   */
  decoderBlock(layer, x, pasts, positions, watch) {
    const block = this.parameters.decoder[layer];
    const [own, cross] = [placeOf("decoder", "self_attention", layer), placeOf("decoder", "cross_attention", layer)];
    const written = (/** @type {Matrix} */ entered) => {
      const first = layer ? pasts.map(({ layers }) => layers[0].values[layers[0].values.length - 1]) : undefined;
      const newest = this.memoryOf(block.self_attention, entered, positions, first);
      pasts.forEach(({ layers }, row) => {
        layers[layer].keys.push(newest.keys[row]);
        layers[layer].values.push(newest.values[row]);
      });
      return pasts.map((past) => past.layers[layer]);
    };
    x = this.residual(
      block,
      0,
      x,
      (entered) => this.attend(own, block.self_attention, entered, written(entered), positions, watch),
      watch?.get(nameOf(own)),
    );
    const sources = pasts.map((past) => past.source[layer]);
    x = this.residual(
      block,
      1,
      x,
      (entered) => this.attend(cross, block.cross_attention, entered, sources, positions, watch),
      watch?.get(nameOf(cross)),
    );
    return this.residual(block, 2, x, (entered) => this.feedForward(block, entered));
  }

  /**
   * LayerNorm(x + sublayer(x)), or with pre-norm x + sublayer(LayerNorm(x)).
   * @param {Block} block
   * @param {number} index
   * @param {Matrix} x
   * @param {(entered: Matrix) => Matrix} sublayer
   * @param {Attended} [attended]
   */
  residual(block, index, x, sublayer, attended) {
    const { norm } = block.residuals[index],
      isPreNorm = this.config.final_norm;
    const total = add(x, sublayer(isPreNorm ? layerNorm(x, norm) : x));
    for (let row = 0; attended && row < x.rows; row++) {
      attended.before.push(rowOf(x, row));
      attended.after.push(rowOf(total, row));
    }
    return isPreNorm ? total : layerNorm(total, norm);
  }

  /**
   * The keys and values of tokens. In self-attention, which has positions, keys may be rotated, and values may be mixed
   * with those of the stack's first block.
   * @param {Projections} projections
   * @param {Matrix} x
   * @param {number[]} [positions]
   * @param {Float64Array[]} [first]
   * @returns {Memory}
   */
  memoryOf(projections, x, positions, first) {
    const rows = Array.from({ length: x.rows }, (_, row) => row);
    const [keys, values] = [dense(x, projections.key), dense(x, projections.value)],
      { norm, first_share: shares } = projections,
      width = this.config.head_dim;
    const key = (/** @type {number} */ row) => (norm ? normalized(rowOf(keys, row), width) : rowOf(keys, row));
    const value = (/** @type {number} */ row) =>
      shares && first ? mixed(rowOf(values, row), first[row], shares) : rowOf(values, row);
    return { keys: rows.map((row) => this.rotated(key(row), positions?.[row])), values: rows.map(value) };
  }

  /**
   * @param {Float64Array} row
   * @param {number} [position] none in attention over the source
   */
  rotated(row, position) {
    const isRotary = this.config.positions === "rotary" && position !== undefined;
    return isRotary ? rotate(row, position, this.config.head_dim) : row;
  }

  /**
   * Multi-head attention: each row of x attends to a memory of its own.
   * @param {Place} place
   * @param {Projections} projections
   * @param {Matrix} x
   * @param {Memory[]} memories
   * @param {number[]} positions
   * @param {Watch} [watch]
   */
  attend(place, projections, x, memories, positions, watch) {
    const { num_heads: heads, value_width: width } = this.config,
      isOwn = place.use === "self_attention";
    const attended = watch?.get(nameOf(place));
    const queries = dense(x, projections.query),
      gates = gatesOf(projections, x, heads),
      joined = zeros(x.rows, heads * width);
    for (let row = 0; row < x.rows; row++) {
      const query = this.query(projections, rowOf(queries, row), isOwn ? positions[row] : undefined),
        gate = rowOf(gates, row),
        weights = [];
      for (let head = 0; head < heads; head++) {
        const scores = this.scores(place, projections, head, query, memories[row].keys, positions[row]);
        weights.push(weightsOf(scores, this.changes, nameOf(place, head, positions[row])));
        if (this.changes.cut.includes(nameOf(place, head))) continue;
        const output = weightedSum(this.config, head, weights[head], memories[row].values);
        rowOf(joined, row).set(
          output.map((value) => value * gate[head]),
          head * width,
        );
      }
      attended?.queries.push(query);
      attended?.memories.push(memories[row]);
      attended?.weights.push(weights);
      attended?.gates.push(gate);
    }
    return dense(joined, projections.output);
  }

  /**
   * The queries of all heads, normalized and rotated where the model does so.
   * @param {Projections} projections
   * @param {Float64Array} row
   * @param {number} [position]
   */
  query({ norm }, row, position) {
    return this.rotated(norm ? normalized(row, this.config.head_dim, norm.scale) : row, position);
  }

  /**
   * The scores of a query's keys, with the bias of their distances.
   * @param {Place} place
   * @param {Projections} projections
   * @param {number} head
   * @param {Float64Array} query
   * @param {Float64Array[]} keys
   * @param {number} position
   */
  scores(place, projections, head, query, keys, position) {
    const { head_dim: width } = this.config,
      divisor = divisorOf(this.config, this.changes);
    const own = headOf(query, head, width),
      group = groupOf(this.config, head);
    return Float64Array.from(
      keys,
      (key, at) =>
        match(this.config, projections, head, own, headOf(key, group, width)) / divisor +
        this.bias(place, head, at - position),
    );
  }

  /**
   * @param {Place} place
   * @param {number} head
   * @param {number} distance of the key after the query
   */
  bias({ stack, use }, head, distance) {
    const { positions, num_heads: heads } = this.config,
      causal = stack === "decoder";
    if (use === "cross_attention") return 0;
    switch (positions) {
      case "sinusoidal":
      case "learned":
      case "rotary":
        return 0;
      case "alibi":
        return alibiBias(distance, head, heads);
      case "relative":
        return this.parameters.relative_biases[Number(causal)].table[bucketOf(distance, causal) * heads + head];
      default:
        throw new Error(`model.positions=${positions}`);
    }
  }

  /**
   * @param {Block} block
   * @param {Matrix} x
   */
  feedForward(block, x) {
    const { up, down, gate } = block.feed_forward,
      hidden = dense(x, up),
      active = (gate ? dense(x, gate) : hidden).data.map(ACTIVATIONS[this.config.activation]);
    hidden.data = gate ? hidden.data.map((value, i) => value * active[i]) : active;
    return dense(hidden, down);
  }

  /** @param {Matrix} x */
  logProbabilities(x) {
    const logits = product(x, this.parameters.embedding.table);
    for (let row = 0; row < x.rows; row++) {
      const values = rowOf(logits, row),
        normalizer = logSumExp(values);
      for (let token = 0; token < values.length; token++) values[token] -= normalizer;
    }
    return logits;
  }
}

/**
 * @param {Place["stack"]} stack
 * @param {Place["use"]} use
 * @param {number} layer
 * @returns {Place}
 */
function placeOf(stack, use, layer) {
  return { stack, use, layer };
}

/**
 * Every place where a model attends, in the order of the layers.
 * @param {Config} config
 */
function placesOf(config) {
  const layers = (/** @type {number} */ count) => Array.from({ length: count }, (_, layer) => layer);
  const decoder = layers(config.decoder_layers);
  return [
    ...layers(config.encoder_layers).map((layer) => placeOf("encoder", "self_attention", layer)),
    ...decoder.map((layer) => placeOf("decoder", "self_attention", layer)),
    ...decoder.map((layer) => placeOf("decoder", "cross_attention", layer)),
  ];
}

/**
 * Where attention at these places leaves what it does.
 * @param {Place[]} places
 * @returns {Map<string, Attended>}
 */
function watchPlaces(places) {
  const nothing = () => ({ queries: [], memories: [], weights: [], gates: [], before: [], after: [] });
  return new Map(places.map((place) => [nameOf(place), nothing()]));
}

/** @type {Record<Config["activation"], (x: number) => number>} */
const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
  relu_squared: (x) => Math.max(0, x) ** 2,
};
