"use strict";
// The maps of one use of attention: a small one of every head of every layer, and a large one of the chosen head.

/**
 * @typedef {object} HeatMap
 * @property {(number | null)[][]} values of query and key; null where a query cannot see a key
 * @property {Span[]} queries
 * @property {Span[]} keys
 * @property {number} offset of the rows of the map after those of the model
 */
/** @typedef {{ name: string, map: HeatMap, choice: HeadChoice, isCut: boolean }} HeadMap */

/**
 * The maps of one use, layer by layer: each head, then all of them together.
 * @param {number} use
 * @param {Sight} sight
 * @param {number[][] | undefined} gradient
 * @param {State} state
 * @param {Changes} changes
 * @returns {HeadMap[][]}
 */
function mapsOf(use, sight, gradient, { units, measure }, changes) {
  const kind = USES[use],
    isCross = kind.use === "cross_attention";
  const of = (/** @type {number[][]} */ values) =>
    heatMapOf(use, values, sight, units, isCross && measure === "shifted");
  if (isCross && measure === "gradient") {
    return gradient
      ? [[{ name: "the whole model", map: of(gradient), choice: { layer: 0, head: -1 }, isCut: false }]]
      : [];
  }
  const uses = sight.uses.filter(({ place }) => place.stack === kind.stack && place.use === kind.use);
  return uses.map(({ place, weights, norms }) => {
    const [heads, all] = measure === "norms" ? [norms.heads, norms.all] : [weights, meanOf(weights)];
    const single = heads.map((values, head) => ({
      name: `layer ${place.layer + 1}, head ${head + 1}`,
      map: of(values),
      choice: { layer: place.layer, head },
      isCut: changes.cut.includes(nameOf(place, head)),
    }));
    const together = measure === "norms" ? "all heads together" : "mean of heads";
    const last = {
      name: `layer ${place.layer + 1}, ${together}`,
      map: of(all),
      choice: { layer: place.layer, head: -1 },
      isCut: false,
    };
    return [...single, last];
  });
}

/** @param {number[][][]} heads */
function meanOf(heads) {
  return heads[0].map((row, y) => row.map((_, x) => heads.reduce((sum, head) => sum + head[y][x], 0) / heads.length));
}

/**
 * @param {number} use
 * @param {number[][]} values
 * @param {Sight} sight
 * @param {Units} units
 * @param {boolean} isShifted
 * @returns {HeatMap}
 */
function heatMapOf(use, values, { source, inputs, outputs }, units, isShifted) {
  const sides = [
    [source, source],
    [outputs, inputs],
    [outputs, source],
  ][use].map((pieces) => spansOf(pieces, units));
  if (!isShifted) return { values: byWords(values, sides[0], sides[1]), queries: sides[0], keys: sides[1], offset: 0 };
  const queries = spansOf(outputs.slice(0, -1), units);
  return { values: byWords(values.slice(1), queries, sides[1]), queries, keys: sides[1], offset: 1 };
}

/**
 * The value of each row that gets the full colour: 1 for weights, the largest of all maps for norms, and the largest of
 * the row for gradients.
 * @param {HeadMap[][]} maps
 * @param {boolean} hasNorms
 * @param {boolean} hasGradient
 * @returns {number[]}
 */
function scalesOf(maps, hasNorms, hasGradient) {
  const all = maps.flat().map(({ map }) => map.values),
    [{ length }] = all;
  const largest = (/** @type {(number | null)[][]} */ rows) =>
    rows.flat().reduce((/** @type {number} */ most, value) => Math.max(most, Math.abs(value ?? 0)), 1e-9);
  const ofAll = hasNorms ? largest(all.flat()) : 1;
  return Array.from({ length }, (_, row) => (hasGradient ? largest([all[0][row]]) : ofAll));
}

/**
 * The shares of the full colour that the cells of a map get.
 * @param {HeatMap} map
 * @param {number[]} scales of the rows
 */
function sharesOf({ values }, scales) {
  return values.map((row, y) => row.map((value) => (value === null ? null : Math.abs(value) / scales[y])));
}

/**
 * @param {HeadMap[][]} maps
 * @param {number[]} scales of the rows
 * @param {HeadChoice} chosen
 * @param {(choice: HeadChoice) => void} choose
 */
function drawSmallMaps(maps, scales, chosen, choose) {
  const grid = maps.map((row) =>
    row.map((head) => {
      const canvas = element("canvas"),
        { layer, head: number } = head.choice;
      const isChosen = layer === chosen.layer && number === chosen.head;
      const label = head.isCut ? `${head.name}, cut` : head.name;
      const button = element(
        "button",
        { type: "button", title: label, "aria-label": label, "aria-pressed": String(isChosen) },
        canvas,
      );
      if (head.isCut) button.classList.add("cut");
      paint(canvas, sharesOf(head.map, scales));
      button.addEventListener("click", () => {
        for (const other of grid.flat()) other.setAttribute("aria-pressed", String(other === button));
        choose(head.choice);
      });
      return button;
    }),
  );
  const small = element("div", { class: "small" });
  const count = maps[0]?.length ?? 0;
  small.style.setProperty("--heads", String(count));
  const heads = maps[0]?.map(({ choice }) => (choice.head < 0 ? "all" : `head ${choice.head + 1}`)) ?? [];
  small.append(element("span"), ...heads.map((text) => element("span", {}, text)));
  grid.forEach((row, layer) => small.append(element("span", {}, count > 1 ? `layer ${layer + 1}` : ""), ...row));
  walk(grid);
  return small;
}

/**
 * A table of cells: who points at one, or walks to it, reads its value in the line above.
 * @param {HeadMap} head
 * @param {number[]} scales of the rows
 * @param {string} term
 * @param {(row: number, key: number) => void} open is called with places in the map
 */
function drawLargeMap({ name, map, choice }, scales, term, open) {
  const hint = choice.head < 0 ? "; choose a head to open one" : ", or click on it for its numbers";
  const line = element("output", {}, `${term}, ${name}: point at a cell${hint}`);
  const tell = (/** @type {number} */ y, /** @type {number} */ x) => {
    const value = map.values[y][x],
      [query, key] = [map.queries[y].text, map.keys[x].text];
    line.textContent = `${query} ← ${key}: ${value === null ? "not seen yet" : value.toFixed(3)}`;
  };
  const cells = map.values.map((row, y) =>
    row.map((value, x) => {
      const cell = element("td", {
        "aria-label": `${map.queries[y].text} reads ${map.keys[x].text}: ${value === null ? "not yet" : value.toFixed(3)}`,
      });
      if (value !== null) cell.style.backgroundColor = heat(Math.abs(value) / scales[y]);
      if (value !== null && value < 0) cell.append(element("span", { class: "minus" }, "−"));
      cell.addEventListener("pointerenter", () => tell(y, x));
      cell.addEventListener("click", () => open(y, x));
      cell.addEventListener("keydown", ({ key }) => {
        if (key === "Enter") open(y, x);
      });
      return cell;
    }),
  );
  const head = element(
    "tr",
    {},
    element("td", { class: "corner" }),
    ...map.keys.map(({ text }) => element("th", { scope: "col" }, element("span", {}, text))),
  );
  const body = cells.map((row, y) => element("tr", {}, element("th", { scope: "row" }, map.queries[y].text), ...row));
  const table = element(
    "table",
    { class: choice.head < 0 ? "map" : "map opens", role: "grid", "aria-label": `${term}, ${name}` },
    element("thead", {}, head),
    element("tbody", {}, ...body),
  );
  table.style.setProperty("--keys", String(map.keys.length));
  walk(cells, tell);
  return [line, element("div", { class: "scroll" }, table)];
}
