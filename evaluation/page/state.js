"use strict";
// What the reader has chosen. The address after # holds it, so that a link restores it; what a link has wrong is left
// out.

/** @typedef {"weights" | "norms" | "shifted" | "gradient"} Measure */
/** @typedef {"pieces" | "words"} Units */
/** @typedef {{ layer: number, head: number }} HeadChoice head -1: all heads together */
/** @typedef {{ use: number, layer: number, head: number, row: number, key: number }} CellChoice */
/**
 * @typedef {object} PanelState What is chosen for one run.
 * @property {number[]} prefix
 * @property {Changes} changes
 * @property {number} chosen translation
 * @property {HeadChoice[]} heads of each use
 * @property {CellChoice | null} cell
 */
/**
 * @typedef {object} State
 * @property {string} line
 * @property {number} direction
 * @property {number} beam
 * @property {Units} units
 * @property {Measure} measure
 * @property {PanelState[]} panels
 */

const BEAMS = [1, 2, 3, 4, 5, 6, 8, 10];
const USES = /** @type {const} */ ([
  { stack: "encoder", use: "self_attention", title: "The source reads itself", term: "encoder self-attention" },
  { stack: "decoder", use: "self_attention", title: "The translation reads itself", term: "decoder self-attention" },
  {
    stack: "decoder",
    use: "cross_attention",
    title: "The translation reads the source",
    term: "encoder-decoder attention",
  },
]);

/** @param {Facts} facts */
function startingPanel({ model }) {
  const heads = USES.map(({ stack }) => ({
    layer: (stack === "encoder" ? model.encoder_layers : model.decoder_layers) - 1,
    head: -1,
  }));
  return /** @type {PanelState} */ ({ prefix: [], changes: structuredClone(UNCHANGED), chosen: 0, heads, cell: null });
}

/** @param {Changes} changes */
function isChanged({ cut, unscaled, weights }) {
  return cut.length > 0 || unscaled || Object.keys(weights).length > 0;
}

/**
 * @param {State} state
 * @returns {string}
 */
function linkOf({ line, direction, beam, units, measure, panels }) {
  const found = new URLSearchParams({ s: line, d: String(direction), b: String(beam), u: units, m: measure });
  panels.forEach(({ prefix, changes, chosen, heads, cell }, panel) => {
    const put = (/** @type {string} */ name, /** @type {string} */ value) => {
      if (value) found.set(name + panel, value);
    };
    put("prefix", prefix.join(" "));
    put("cut", changes.cut.join(" "));
    put("unscaled", changes.unscaled ? "1" : "");
    put(
      "weight",
      Object.entries(changes.weights)
        .map(([name, weight]) => `${name}:${weight}`)
        .join(" "),
    );
    put("choice", chosen ? String(chosen) : "");
    put("heads", heads.map(({ layer, head }) => `${layer}.${head}`).join(" "));
    put("cell", cell ? [cell.use, cell.layer, cell.head, cell.row, cell.key].join(" ") : "");
  });
  return found.toString();
}

/**
 * @param {string} link
 * @param {Facts[]} runs
 * @param {State} usual
 * @returns {State}
 */
function stateOf(link, runs, usual) {
  const found = new URLSearchParams(link);
  const among = (
    /** @type {string} */ name,
    /** @type {readonly (string | number)[]} */ known,
    /** @type {any} */ otherwise,
  ) => known.find((value) => String(value) === found.get(name)) ?? otherwise;
  return {
    line: found.get("s") ?? usual.line,
    direction: among(
      "d",
      runs[0].directions.map((_, number) => number),
      usual.direction,
    ),
    beam: among("b", BEAMS, usual.beam),
    units: among("u", ["pieces", "words"], usual.units),
    measure: among("m", ["weights", "norms", "shifted", "gradient"], usual.measure),
    panels: runs.map((facts, panel) => panelOf((name) => found.get(name + panel) ?? "", facts)),
  };
}

/**
 * @param {(name: string) => string} get
 * @param {Facts} facts
 * @returns {PanelState}
 */
function panelOf(get, facts) {
  const usual = startingPanel(facts),
    { model, tokenizer } = facts;
  const numbers = (/** @type {string} */ text) =>
    text.split(/[ .]/).filter(Boolean).map(Number).filter(Number.isInteger);
  const layersOf = (/** @type {number} */ use) =>
    USES[use].stack === "encoder" ? model.encoder_layers : model.decoder_layers;
  const isHead = (/** @type {HeadChoice} */ { layer, head }, /** @type {number} */ use) =>
    layer >= 0 && layer < layersOf(use) && head >= -1 && head < model.num_heads;
  const chosen = get("heads")
    .split(" ")
    .map((text) => numbers(text))
    .map(([layer, head]) => ({ layer, head }));
  const [use, layer, head, row, key] = numbers(get("cell"));
  return {
    prefix: numbers(get("prefix")).filter((id) => id >= EOS && id < tokenizer.pieces.length),
    changes: {
      cut: get("cut")
        .split(" ")
        .filter((name) => namesHead(name, facts)),
      unscaled: get("unscaled") === "1",
      weights: Object.fromEntries(
        get("weight")
          .split(" ")
          .map((text) => text.split(":"))
          .filter(
            ([name, weight]) =>
              namesHead(name.split(".").slice(0, 4).join("."), facts) && Number(weight) >= 0 && Number(weight) <= 1,
          )
          .map(([name, weight]) => [name, Number(weight)]),
      ),
    },
    chosen: Math.max(0, numbers(get("choice"))[0] ?? 0),
    heads: usual.heads.map((otherwise, use) => (chosen[use] && isHead(chosen[use], use) ? chosen[use] : otherwise)),
    cell:
      USES[use] && isHead({ layer, head }, use) && head >= 0 && row >= 0 && key >= 0
        ? { use, layer, head, row, key }
        : null,
  };
}

/**
 * Whether a name is that of a head, as nameOf() gives it.
 * @param {string} name
 * @param {Facts} facts
 */
function namesHead(name, { model }) {
  const [stack, use, layer, head] = name.split(".");
  const layers = stack === "encoder" ? model.encoder_layers : model.decoder_layers;
  const isKnown = USES.some((known) => known.stack === stack && known.use === use);
  return isKnown && Number(layer) >= 0 && Number(layer) < layers && Number(head) >= 0 && Number(head) < model.num_heads;
}
