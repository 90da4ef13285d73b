"use strict";
// Runs a model beside the page, so that typing never waits for it. A newer question ends the work on an older one.

/**
 * @typedef {object} Facts What pack.py says of a run.
 * @property {string} name
 * @property {number} bits
 * @property {Config} model
 * @property {Omit<SearchSettings, "count" | "limit" | "prefix"> & { max_length_factor: number, max_length_extra: number }} decoding
 * @property {{ source: string, target: string, tag: number[], example: string }[]} directions
 * @property {Vocabulary} tokenizer
 * @property {Reading} reading
 * @property {PackedPlace[]} parameters
 * @property {Cost[]} costs
 */
/** @typedef {{ stack: Place["stack"], use: Place["use"], layer: number, head: number, change: number, half: number }} Cost */
/**
 * @typedef {object} Question
 * @property {string} line
 * @property {number} direction
 * @property {number} beam
 * @property {number[]} prefix
 * @property {Changes} changes
 * @property {boolean} isChanged
 * @property {number} chosen the translation to look at
 */
/** @typedef {{ tokens: number[], text: string, logProb: number, score: number, ended: boolean, node: number }} Translation */
/** @typedef {{ token: number, piece: string, probability: number }} Choice */
/**
 * @typedef {object} Use What the heads of one place read.
 * @property {Place} place
 * @property {number[][][]} weights of head, query and key
 * @property {{ heads: number[][][], all: number[][] }} norms
 */
/**
 * @typedef {object} Sight
 * @property {Use[]} uses
 * @property {number[]} shares of the source
 * @property {Choice[]} chosen
 * @property {Choice[][]} alternatives
 * @property {string[]} source
 * @property {string[]} inputs
 * @property {string[]} outputs
 */
/**
 * @typedef {object} Cell
 * @property {number[]} query
 * @property {number[]} key
 * @property {number} match
 * @property {number} divisor
 * @property {number} bias
 * @property {number[]} scores of all keys
 * @property {number[]} weights
 * @property {number[]} value
 * @property {number[]} output
 * @property {number} gate 1 without gates
 */

const ALTERNATIVES = 8;
const MOST_PIECES = 60; // that are still legible along an axis

/** A run, and what was last looked at. */
class Bench {
  /**
   * @param {Facts} facts
   * @param {ArrayBuffer} content
   */
  constructor(facts, content) {
    this.facts = facts;
    this.parameters = /** @type {ModelParameters} */ (unpackParameters(facts.parameters, content));
    this.tokenizer = new Tokenizer(facts.tokenizer);
  }

  /** @param {Changes} [changes] */
  model(changes) {
    return new Transformer(this.facts.model, this.parameters, changes);
  }

  /**
   * The ids of a line, with its tag and EOS; none if it is empty.
   * @param {string} line
   * @param {number} direction
   */
  sourceOf(line, direction) {
    const ids = this.tokenizer.encode(read(line, this.facts.reading));
    return ids.length ? [...this.facts.directions[direction].tag, ...ids, EOS] : [];
  }

  /**
   * The most tokens on either side.
   */
  get positions() {
    return this.facts.model.positions === "learned" ? this.facts.model.max_positions : Infinity;
  }

  /**
   * @param {number[]} source
   * @param {Question} question
   * @returns {Generator<Search, Search>}
   */
  search(source, { beam, prefix, changes }) {
    const { decoding } = this.facts,
      model = this.model(changes);
    const longest = Math.floor(source.length * decoding.max_length_factor + decoding.max_length_extra);
    const limit = Math.max(prefix.length, Math.min(longest, this.positions));
    return search(model, model.encode(embedSource(model, source)), {
      ...decoding,
      beam_size: beam,
      count: beam,
      limit,
      prefix,
    });
  }

  /** @param {number[]} tokens */
  textOf(tokens) {
    return this.tokenizer.decode(tokens, this.facts.reading);
  }

  /**
   * @param {Hypothesis} hypothesis
   * @returns {Translation}
   */
  describe({ tokens, logProb, score, ended, node }) {
    return { tokens, logProb, score, ended, node, text: this.textOf(tokens) };
  }

  /**
   * @param {number[]} source
   * @param {number[]} target
   * @param {Changes} changes
   * @returns {Sight | undefined} nothing of what is too long to draw
   */
  look(source, target, changes) {
    if (Math.max(source.length, target.length) > MOST_PIECES) return undefined;
    const model = this.model(changes),
      found = look(model, source, target);
    this.looked = { model, ...found };
    const pieces = (/** @type {number[]} */ ids) => ids.map((id) => this.tokenizer.piece(id));
    const choice = (/** @type {number} */ row, /** @type {number} */ token) => ({
      token,
      piece: this.tokenizer.piece(token),
      probability: Math.exp(rowOf(found.logProbs, row)[token]),
    });
    return {
      uses: placesOf(model.config).map((place) => this.use(model, place, found.watch)),
      shares: sourceShares(model, found.watch),
      chosen: target.map((token, row) => choice(row, token)),
      alternatives: target.map((_, row) =>
        highest(rowOf(found.logProbs, row), ALTERNATIVES, EOS).map((token) => choice(row, token)),
      ),
      source: pieces(source),
      inputs: pieces(inputsOf(target)),
      outputs: pieces(target),
    };
  }

  /**
   * @param {Transformer} model
   * @param {Place} place
   * @param {Map<string, Attended>} watch
   * @returns {Use}
   */
  use(model, place, watch) {
    const attended = /** @type {Attended} */ (watch.get(nameOf(place)));
    const heads = attended.weights[0].map((_, head) => attended.weights.map((row) => [...row[head]]));
    return { place, weights: heads, norms: normsOf(model, place, attended) };
  }

  /**
   * All numbers behind a weight of what was last looked at.
   * @param {Place} place
   * @param {number} head
   * @param {number} row
   * @param {number} key
   * @returns {Cell | undefined}
   */
  cell(place, head, row, key) {
    if (!this.looked) return undefined;
    const { model, watch } = this.looked,
      { config } = model,
      projections = projectionsAt(model, place);
    const { queries, memories, weights, gates } = /** @type {Attended} */ (watch.get(nameOf(place)));
    if (weights[row]?.[head]?.[key] === undefined) return undefined; // of a longer translation
    const group = groupOf(config, head),
      { keys, values } = memories[row];
    const own = headOf(queries[row], head, config.head_dim),
      other = headOf(keys[key], group, config.head_dim);
    const seen = keys.slice(0, weights[row][head].length);
    return {
      query: [...own],
      key: [...other],
      match: match(config, projections, head, own, other),
      divisor: divisorOf(config, model.changes),
      bias: model.bias(place, head, key - row),
      scores: [...model.scores(place, projections, head, queries[row], seen, row)],
      weights: [...weights[row][head]],
      value: [...headOf(values[key], group, config.value_width)],
      output: [...weightedSum(config, head, weights[row][head], values.slice(0, seen.length))],
      gate: gates[row][head],
    };
  }
}

/** @type {Bench} */
let bench;
let newest = 0;
const turns = new MessageChannel();
/** @type {((value?: unknown) => void)[]} */
const waiting = []; // a gradient may be computed while a search goes on
turns.port1.onmessage = () => waiting.shift()?.();

/** Lets messages in that have come meanwhile. */
function nextTurn() {
  return new Promise((resume) => {
    waiting.push(resume);
    turns.port2.postMessage(null);
  });
}

/**
 * Runs a generator to its end, or until there is a newer question: then undefined.
 * @template Step, Result
 * @param {number} id
 * @param {Generator<Step, Result>} work
 * @param {(step: Step) => void} [tell]
 * @returns {Promise<Result | undefined>}
 */
async function run(id, work, tell) {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    tell?.(value);
    await nextTurn();
    if (id !== newest) return undefined;
  }
}

/**
 * @param {number} id
 * @param {Question} question
 */
async function translate(id, question) {
  if (question.direction < 0) throw new Error(`${bench.facts.name} does not translate in this direction`);
  const source = bench.sourceOf(question.line, question.direction);
  if (source.length > bench.positions) {
    throw new Error(`this sentence has ${source.length} pieces, and the model's positions end at ${bench.positions}`);
  }
  if (!source.length) {
    self.postMessage({ id, kind: "translated", source, translations: [], tree: [] });
    return;
  }
  const found = await run(id, bench.search(source, question), ({ live, best }) => {
    const [newest] = live.length ? live : best;
    self.postMessage({ id, kind: "partial", text: bench.textOf(newest.tokens) });
  });
  if (!found) return;
  const translations = found.best.map((hypothesis) => bench.describe(hypothesis));
  const tree = found.tree.map((branch) => ({ ...branch, piece: bench.tokenizer.piece(branch.token) }));
  self.postMessage({ id, kind: "translated", source, translations, tree });
  const { tokens } = translations[question.chosen < translations.length ? question.chosen : 0];
  const sight = bench.look(source, tokens, question.changes);
  self.postMessage({ id, kind: "look", sight, isLast: !question.isChanged });
  await nextTurn();
  if (id !== newest || !question.isChanged) return;
  const before = await run(id, bench.search(source, { ...question, changes: UNCHANGED }));
  if (!before) return;
  const same = before.best[question.chosen] ?? before.best[0];
  self.postMessage({ id, kind: "before", text: bench.textOf(same.tokens) });
}

/**
 * @param {{ data: any }} message
 */
async function answer({ data }) {
  const { id, kind } = data;
  try {
    if (kind === "start") bench = new Bench(data.facts, bytesOf(data.content));
    if (kind === "cell") {
      self.postMessage({ id, kind, cell: bench.cell(data.place, data.head, data.row, data.key) });
      return;
    }
    newest = id;
    if (kind === "translate") await translate(id, data.question);
    if (kind === "look") {
      const sight = bench.look(data.source, data.target, data.changes);
      self.postMessage({ id, kind, sight, isLast: true });
    }
    if (kind === "gradient") {
      const gradient = await run(id, gradientTimesInput(bench.model(data.changes), data.source, data.target));
      if (gradient) self.postMessage({ id, kind, gradient });
    }
  } catch (error) {
    self.postMessage({ id, kind: "failed", problem: error instanceof Error ? error.message : String(error) });
  }
}

self.onmessage = answer;
