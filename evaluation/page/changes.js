"use strict";
// What the reader has changed about a model, and what each head is worth.

/**
 * What is changed, with a way back.
 * @param {Panel} panel
 */
function drawChanges(panel) {
  const { changes, prefix } = panel.own,
    back = (/** @type {Changes} */ next) => () => panel.change(next);
  const unscaled = element("input", { type: "checkbox", checked: changes.unscaled });
  unscaled.addEventListener("change", () => panel.change({ ...changes, unscaled: unscaled.checked }));
  const cuts = changes.cut.map((name) =>
    action(`${headName(name)} is cut ✕`, () => panel.toggleHead(name), { class: "undo" }),
  );
  const weights = Object.entries(changes.weights).map(([name, weight]) => {
    const { [name]: _, ...others } = changes.weights;
    return action(`${headName(name)}: a weight is ${weight} ✕`, back({ ...changes, weights: others }), {
      class: "undo",
    });
  });
  const start = prefix.length
    ? [action(`the first ${prefix.length} tokens are given ✕`, () => panel.goOnFrom([]), { class: "undo" })]
    : [];
  panel.before.textContent = "";
  const scale =
    panel.facts.model.score === "scaled_dot_product" ? [element("label", {}, unscaled, " scores without 1/√H")] : [];
  panel.parts.changes.replaceChildren(...scale, ...cuts, ...weights, ...start, panel.before);
}

/**
 * What the loss of each head costs, as scripts/page.py measured it.
 * @param {Panel} panel
 */
function drawCosts(panel) {
  const { costs } = panel.facts,
    largest = costs.reduce((most, { change }) => Math.max(most, Math.abs(change)), 1e-9);
  const names = [...new Set(costs.map(({ stack, use, layer }) => nameOf({ stack, use, layer })))];
  const rows = names.map((name) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, placeName(name)),
      ...costs
        .filter((cost) => nameOf(cost) === name)
        .map((cost) => {
          const head = nameOf(cost, cost.head),
            isCut = panel.own.changes.cut.includes(head);
          const label = `${headName(head)}: ${cost.change.toFixed(2)} ± ${cost.half.toFixed(2)} BLEU without it`;
          const button = action(cost.change.toFixed(2).replace("-", "−"), () => panel.toggleHead(head), {
            "aria-pressed": String(isCut),
            title: label,
            "aria-label": label,
          });
          button.style.setProperty("--size", cssShare((0.5 * Math.max(0, -cost.change)) / largest));
          return element("td", {}, button);
        }),
    ),
  );
  const numbers = Array.from({ length: panel.facts.model.num_heads }, (_, head) => `head ${head + 1}`);
  const heads = element("tr", {}, element("td"), ...numbers.map((text) => element("th", { scope: "col" }, text)));
  panel.parts.costs.replaceChildren(
    element(
      "p",
      { class: "quiet" },
      "The change of BLEU on the validation set, by greedy search, if this head alone is cut. Click to cut it here.",
    ),
    element("table", { class: "table" }, element("thead", {}, heads), element("tbody", {}, ...rows)),
  );
}

/** @param {string} name of a place, and what nameOf() puts after it */
function placeName(name) {
  const [stack, use, layer] = name.split("."),
    found = USES.find((known) => known.stack === stack && known.use === use);
  return `${found?.term}, layer ${Number(layer) + 1}`;
}

/** @param {string} name */
function headName(name) {
  return `${placeName(name)}, head ${Number(name.split(".")[3]) + 1}`;
}
