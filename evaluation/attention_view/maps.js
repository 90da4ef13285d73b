// Heat maps of attention, one of which is large; base.js comes before.

/**
 * A use of attention: weights[layer][head][query][key], null where the query cannot see the key, and the tokens.
 * @typedef {{ title: string, queries_are: string, keys_are: string, queries: string[], keys: string[],
 *   weights: (number | null)[][][][] }} Use
 */
/** @typedef {(number | null)[][]} HeatMap */

/**
 * @param {HeatMap[]} heads
 * @returns {HeatMap}
 */
function mean(heads) {
  const over = (/** @type {number} */ y, /** @type {number} */ x) =>
    heads.reduce((sum, head) => sum + Number(head[y][x]), 0) / heads.length;
  return heads[0].map((row, y) => row.map((weight, x) => (weight === null ? null : over(y, x))));
}

/**
 * The grid of buttons, each with the canvas of its map, and the element that shows it.
 * @param {HeatMap[][]} layers
 * @param {(layer: number, head: number) => string} name
 */
function drawSmall(layers, name) {
  const canvases = layers.map((maps) => maps.map(() => element("canvas")));
  const buttons = canvases.map((row, layer) => row.map((canvas, head) =>
    element("button", { type: "button", title: name(layer, head), "aria-label": name(layer, head) }, canvas)));
  const heads = layers[0].map((_, head) => (head === layers[0].length - 1 ? "mean" : `head ${head + 1}`));
  const small = element("div", { class: "small" }, ...["", ...heads].map((text) => element("span", {}, text)));
  buttons.forEach((row, layer) => small.append(element("span", {}, `layer ${layer + 1}`), ...row));
  small.style.gridTemplateColumns = `auto repeat(${heads.length}, minmax(2.5rem, 4.5rem))`;
  return { small, buttons, canvases };
}

/**
 * The table of the large map and its cells; point() gets the place at which the reader points.
 * @param {Use} use
 * @param {(query: number, key: number) => void} point
 */
function drawLarge(use, point) {
  const corner = element("th", { class: "corner" }, `${use.keys_are} →`, element("br"), `${use.queries_are} ↓`);
  const across = use.keys.map((key) => element("th", { scope: "col" }, element("span", {}, key)));
  const down = use.queries.map((query) => element("th", { scope: "row" }, query));
  const cells = use.queries.map((query) => use.keys.map((key) => element("td", { "aria-label": `${query} → ${key}` })));
  const rows = cells.map((row, y) => element("tr", {}, down[y], ...row));
  const head = element("thead", {}, element("tr", {}, corner, ...across));
  const table = element("table", { class: "map", role: "grid" }, head, element("tbody", {}, ...rows));
  const show = (/** @type {number} */ y, /** @type {number} */ x) => {
    table.querySelectorAll(".here").forEach((label) => label.classList.remove("here"));
    [across[x], down[y]].forEach((label) => label.classList.add("here"));
    point(y, x);
  };
  walk(cells, show)(0, 0);
  cells.forEach((row, y) => row.forEach((cell, x) => cell.addEventListener("pointerenter", () => show(y, x))));
  return { table, cells };
}

/**
 * How to read the maps of a use of attention, and its maps.
 * @param {Use} use
 * @returns {HTMLElement[]}
 */
function drawUse(use) {
  const layers = use.weights.map((heads) => [...heads, mean(heads)]);
  const heads = use.weights[0].length;
  let [layer, head, query, key] = [layers.length - 1, heads, 0, 0];
  const name = (/** @type {number} */ y, /** @type {number} */ x) =>
    `layer ${y + 1}, ${x < heads ? `head ${x + 1}` : "mean over heads"}`;

  const title = element("h3"), told = element("output"), bar = element("canvas");
  const tell = () => {
    const weight = layers[layer][head][query][key];
    const value = weight === null ? "not visible yet" : `weight ${weight.toFixed(3)}`;
    told.value = `${use.queries[query]} → ${use.keys[key]}: ${value} (${name(layer, head)})`;
  };
  const { table, cells } = drawLarge(use, (y, x) => { [query, key] = [y, x]; tell(); });
  const { small, buttons, canvases } = drawSmall(layers, name);
  const choose = (/** @type {number} */ y, /** @type {number} */ x) => {
    buttons[layer][head].setAttribute("aria-pressed", "false");
    [layer, head] = [y, x];
    buttons[layer][head].setAttribute("aria-pressed", "true");
    title.textContent = name(layer, head);
    cells.forEach((row, i) => row.forEach((cell, j) => {
      const weight = layers[layer][head][i][j];
      cell.style.backgroundColor = weight === null ? "" : heat(weight);
    }));
    tell();
  };
  const draw = () => {
    paint(bar, [Array.from({ length: 256 }, (_, step) => step / 255)]);
    canvases.forEach((row, y) => row.forEach((canvas, x) => paint(canvas, layers[y][x])));
    choose(layer, head);
  };
  const enter = walk(buttons, choose);
  buttons.flat().forEach((button) => button.addEventListener("click", () => button.focus()));  // Safari does not
  enter(layer, head);
  draw();
  whenThemeChanges(draw);
  const scale = element("div", { class: "bar" }, "0", bar, "1");
  const [left, map] = [small, table].map((wide) => element("div", { class: "scroll" }, wide));
  const maps = element("div", { class: "use" }, left, element("div", { class: "large" }, title, told, map, scale));
  maps.style.setProperty("--keys", String(use.keys.length));
  maps.style.setProperty("--label", `${Math.max(5, ...use.queries.map((token) => 0.6 * token.length))}rem`);
  return [element("p", { class: "quiet" }, `Rows are queries: ${use.queries_are}; columns are keys: ${use.keys_are}.`), maps];
}
