"use strict";
// Greedy and beam search as in model/decoding, for one sentence. They are generators that stop after every token, so
// that who asks can show what is there, or ask for something else.

/**
 * @typedef {object} SearchSettings
 * @property {number} beam_size 1: greedy
 * @property {number} count translations
 * @property {number} limit the most tokens, EOS included
 * @property {"gnmt" | "length"} normalization
 * @property {number} length_penalty
 * @property {number} coverage_penalty
 * @property {number[]} prefix tokens with which every translation begins
 */
/**
 * @typedef {object} Hypothesis
 * @property {number[]} tokens with EOS, if it has ended
 * @property {number} logProb
 * @property {number} score
 * @property {boolean} ended
 * @property {Past} past
 * @property {Float64Array} covered attention to each source token so far
 * @property {number} node its place in the tree
 */
/**
 * @typedef {object} Branch A token in the tree of a search.
 * @property {number} parent a place in the tree; -1: none
 * @property {number} token
 * @property {number} logProb of the whole branch
 * @property {number} score
 */
/** @typedef {{ live: Hypothesis[], best: Hypothesis[], tree: Branch[] }} Search */
/** @typedef {{ parent: Hypothesis, token: number, logProb: number }} Continuation */

/**
 * @param {Transformer} model
 * @param {Matrix} encoded
 * @param {SearchSettings} settings
 * @returns {Generator<Search, Search>}
 */
function* search(model, encoded, settings) {
  /** @type {Search} */
  const state = { live: [startOf(model, encoded)], best: [], tree: [] };
  for (let length = 1; length <= settings.limit; length++) {
    const found = continuations(model, state.live, settings, settings.prefix[length - 1]);
    const isDone =
      settings.beam_size === 1 ? takeLikeliest(state, found, settings) : takeBeam(state, found, settings, length);
    yield state;
    if (isDone) break;
  }
  for (const live of state.live) if (state.best.length < settings.count) state.best.push(live);
  return state;
}

/**
 * @param {Transformer} model
 * @param {Matrix} encoded
 * @returns {Hypothesis}
 */
function startOf(model, encoded) {
  const covered = new Float64Array(encoded.rows);
  return { tokens: [], logProb: 0, score: 0, ended: false, past: model.begin(encoded), covered, node: -1 };
}

/**
 * The 2K likeliest continuations by one token, likeliest first: at most K of them take EOS, so that K can live on.
 * @param {Transformer} model
 * @param {Hypothesis[]} live
 * @param {SearchSettings} settings
 * @param {number | undefined} forced the only token that may come
 * @returns {Continuation[]}
 */
function continuations(model, live, { beam_size: beams, coverage_penalty: coverage }, forced) {
  const last = placeOf("decoder", "cross_attention", model.config.decoder_layers - 1),
    watch = watchPlaces([last]);
  const newest = live.map(({ tokens }) => tokens.at(-1) ?? BOS);
  const logProbs = model.decodeStep(
    newest,
    live.map(({ past }) => past),
    watch,
  );
  return live
    .flatMap((parent, row) => {
      const values = rowOf(logProbs, row);
      if (coverage) parent.covered = cover(parent.covered, watch.get(nameOf(last))?.weights[row] ?? []);
      const tokens = forced === undefined ? highest(values, 2 * beams, EOS) : [forced];
      return tokens.map((token) => ({ parent, token, logProb: parent.logProb + values[token] }));
    })
    .sort((one, other) => other.logProb - one.logProb)
    .slice(0, 2 * beams);
}

/**
 * @param {Float64Array} covered
 * @param {Float64Array[]} weights of each head
 */
function cover(covered, weights) {
  return covered.map((total, key) => total + sum(weights.map((head) => head[key])) / weights.length);
}

/**
 * Greedy search: returns whether the likeliest token ends the translation.
 * @param {Search} state
 * @param {Continuation[]} found
 * @param {SearchSettings} settings
 */
function takeLikeliest(state, found, settings) {
  const next = extend(state, found[0], settings);
  (next.ended ? state.best : (state.live = [])).push(next);
  if (next.ended) state.live = [];
  return next.ended;
}

/**
 * A hypothesis ends if EOS is among the K likeliest continuations; the K likeliest without EOS live on. Returns whether
 * none of them can get among the best: log-probabilities only fall, and no divisor exceeds that of the limit.
 * @param {Search} state
 * @param {Continuation[]} found
 * @param {SearchSettings} settings
 * @param {number} length
 */
function takeBeam(state, found, settings, length) {
  const ended = found.slice(0, settings.beam_size).filter(({ token }) => token === EOS);
  const live = found.filter(({ token }) => token !== EOS).slice(0, settings.beam_size);
  const [finished, following] = [ended, live].map((chosen) => chosen.map((next) => extend(state, next, settings)));
  state.best = [...state.best, ...finished].sort((one, other) => other.score - one.score).slice(0, settings.count);
  state.live = following;
  if (length === settings.limit || following.length === 0) return true;
  const bound = following[0].logProb / divisor(settings.limit, settings);
  return state.best.length === settings.count && bound <= state.best[settings.count - 1].score;
}

/**
 * The hypothesis with one more token, and a branch for it in the tree.
 * @param {Search} state
 * @param {Continuation} continuation
 * @param {SearchSettings} settings
 * @returns {Hypothesis}
 */
function extend(state, { parent, token, logProb }, settings) {
  const tokens = [...parent.tokens, token],
    score = scoreOf(logProb, tokens.length, parent.covered, settings);
  const node = state.tree.push({ parent: parent.node, token, logProb, score }) - 1;
  return { tokens, logProb, score, ended: token === EOS, past: branch(parent.past), covered: parent.covered, node };
}

/**
 * A past that grows by itself; what is in it is shared.
 * @param {Past} past
 * @returns {Past}
 */
function branch({ layers, source }) {
  return { layers: layers.map(({ keys, values }) => ({ keys: [...keys], values: [...values] })), source };
}

/**
 * log P / divisor + coverage (Wu et al. 2016, equation 14).
 * @param {number} logProb
 * @param {number} length EOS included
 * @param {Float64Array} covered
 * @param {SearchSettings} settings
 */
function scoreOf(logProb, length, covered, settings) {
  const score = logProb / divisor(length, settings);
  if (!settings.coverage_penalty) return score;
  const seen = covered.map((total) => Math.log(Math.min(1, Math.max(1e-9, total))));
  return score + settings.coverage_penalty * sum(seen);
}

/**
 * @param {number} length
 * @param {SearchSettings} settings
 */
function divisor(length, { normalization, length_penalty: exponent }) {
  switch (normalization) {
    case "gnmt":
      return ((5 + length) / 6) ** exponent;
    case "length":
      return length ** exponent;
    default:
      throw new Error(`decoding.normalization=${normalization}`);
  }
}
