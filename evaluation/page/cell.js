"use strict";
// One weight, step by step, with all its numbers.

const FORMULAS = {
  scaled_dot_product: "q · k",
  dot_product: "q · k",
  general: "qᵀ W k",
  additive: "v · tanh(q + k)",
};

/** @param {number} value */
function shown(value) {
  const digits = Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
  return digits === "-0.00" ? "0.00" : digits.replace("-", "−");
}

/**
 * A row of numbers, tinted by their size.
 * @param {string} title
 * @param {number[]} values
 * @param {number} [marked] the place of the number that this is about
 */
function numbersRow(title, values, marked) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const cells = values.map((value, at) => {
    const cell = element("td", at === marked ? { class: "here" } : {}, shown(value));
    cell.style.setProperty("--size", `${Math.round((Math.abs(value) / largest) * 45)}%`);
    return cell;
  });
  return element("tr", {}, element("th", { scope: "row" }, title), ...cells);
}

/**
 * @param {string} label
 * @param {...HTMLElement} rows
 */
function numbersTable(label, ...rows) {
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    element("table", { class: "numbers" }, ...rows),
  );
}

/**
 * @param {Cell} cell
 * @param {Config} config
 * @param {number} at the key
 * @param {string[]} names of the query, then of all keys
 * @returns {HTMLElement[]}
 */
function drawSteps(cell, { score, head_dim: width }, at, [query, ...keys]) {
  const { match, divisor, bias, scores, weights, value, output, gate } = cell,
    isProduct = score.endsWith("dot_product");
  const products = cell.query.map((q, i) => q * cell.key[i]),
    weighted = value.map((v) => weights[at] * v);
  const division =
    divisor === 1 ? "" : `, ${shown(match)} / √${width} = ${shown(match)} / ${shown(divisor)} = ${shown(match / divisor)}`;
  const added = bias
    ? `, ${bias < 0 ? "−" : "+"} ${shown(Math.abs(bias))} for the distance = ${scores[at].toFixed(3)}`
    : "";
  const names = element(
    "tr",
    {},
    element("td"),
    ...keys.slice(0, scores.length).map((key) => element("th", { scope: "col" }, key)),
  );
  return [
    element("p", {}, `The query for ${query} meets the key of ${keys[at]}; both have ${width} numbers.`),
    numbersTable(
      "query and key",
      numbersRow("q", cell.query),
      numbersRow("k", cell.key),
      ...(isProduct ? [numbersRow("q × k", products)] : []),
    ),
    element("p", { class: "formula" }, `${FORMULAS[score]} = ${shown(match)}${division}${added}`),
    element("p", {}, `The softmax of the scores of all keys makes this ${weights[at].toFixed(4)}:`),
    numbersTable("scores and weights", names, numbersRow("score", scores, at), numbersRow("weight", weights, at)),
    element(
      "p",
      {},
      `The value of ${keys[at]} goes into the sum with this weight; the sum${gate === 1 ? "" : `, times its gate ${gate.toFixed(3)},`} is what the head returns for ${query}.`,
    ),
    numbersTable(
      "value and sum",
      numbersRow("v", value),
      numbersRow("weight × v", weighted),
      numbersRow("sum", output),
    ),
  ];
}

/**
 * The part of a panel that shows the weight which is open.
 * @param {Panel} panel
 * @param {Cell | undefined} cell
 */
function drawCell(panel, cell) {
  const {
      own: { cell: chosen, changes },
      sight,
      facts,
    } = panel,
    part = panel.parts.cell;
  if (!chosen || !cell || !sight) return part.replaceChildren();
  const { use, layer, head, row, key } = chosen,
    { stack, use: name, term } = USES[use];
  const keys = use === 1 ? sight.inputs : sight.source,
    queries = use === 0 ? sight.source : sight.outputs;
  const place = nameOf({ stack, use: name, layer }, head, row, key);
  const inRow = place.slice(0, place.lastIndexOf(".") + 1);
  const others = Object.entries(changes.weights).filter(([name]) => name.startsWith(inRow) && name !== place);
  const number = element("input", {
    type: "number",
    min: 0,
    max: others.reduce((left, [, weight]) => left - weight, 1).toFixed(2),
    step: 0.05,
    value: cell.weights[key].toFixed(2),
  });
  number.addEventListener("change", () => {
    if (number.validity.valid && number.value)
      panel.change({ ...changes, weights: { ...changes.weights, [place]: Number(number.value) } });
  });
  const close = action("Close", () => {
    panel.own.cell = null;
    panel.app.changed();
    part.replaceChildren();
  });
  const title = `One weight: ${term}, layer ${layer + 1}, head ${head + 1}, ${queries[row]} ← ${keys[key]}`;
  return part.replaceChildren(
    element("h3", {}, title),
    element("p", {}, element("label", {}, "Set the weight to ", number), " ", close),
    ...drawSteps(cell, facts.model, key, [queries[row], ...keys]),
  );
}
