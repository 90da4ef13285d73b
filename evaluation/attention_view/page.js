"use strict";
// A use of attention has weights[layer][head][query][key], null where the query cannot see the key, and the tokens of
// its queries and keys. All text goes into the page as text, never as HTML.

const { uses, colours } = JSON.parse(document.getElementById("weights").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Colours run from weight 0 to weight 1; on a dark page the other way, so that 0 is always near the paper.
function colour(weight) {
  const step = Math.round(weight * (colours.length - 1));
  return colours[dark.matches ? colours.length - 1 - step : step];
}

// A pixel for each cell; where there is no weight, the canvas stays transparent.
function paint(canvas, weights) {
  [canvas.width, canvas.height] = [weights[0].length, weights.length];
  const context = canvas.getContext("2d");
  weights.forEach((row, y) => row.forEach((weight, x) => {
    if (weight === null) return;
    context.fillStyle = colour(weight);
    context.fillRect(x, y, 1, 1);
  }));
}

function mean(heads) {
  const over = (y, x) => heads.reduce((sum, head) => sum + head[y][x], 0) / heads.length;
  return heads[0].map((row, y) => row.map((weight, x) => (weight === null ? null : over(y, x))));
}

// Arrow keys walk over rows of elements, one of which is in the order of the Tab key: the last that had the focus.
function walk(grid, arrive) {
  let current = null;
  const enter = (y, x) => {
    if (current) current.tabIndex = -1;
    current = grid[y][x];
    current.tabIndex = 0;
    arrive(y, x);
  };
  grid.forEach((row, y) => row.forEach((item, x) => {
    item.tabIndex = -1;
    item.addEventListener("focus", () => enter(y, x));
    item.addEventListener("keydown", (event) => {
      const [down, right] = STEPS[event.key] ?? [NaN, NaN];
      const next = grid[y + down]?.[x + right];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
  }));
  return enter;
}

function drawSmall(use, layers, name) {
  const grid = layers.map((maps, layer) => maps.map((weights, head) => element("button", {
    type: "button", title: name(layer, head),
  }, [element("canvas")])));
  const heads = [...use.weights[0].map((_, head) => `head ${head + 1}`), "mean"];
  const small = element("div", { className: "small" }, ["", ...heads].map((text) => element("span", {}, [text])));
  grid.forEach((row, layer) => small.append(element("span", {}, [`layer ${layer + 1}`]), ...row));
  small.style.gridTemplateColumns = `auto repeat(${heads.length}, minmax(2.5rem, 4.5rem))`;
  return [small, grid];
}

function drawLarge(use, point) {
  const across = element("tr", {}, [
    element("th", { className: "corner" }, [`${use.keys_are} →`, element("br"), `${use.queries_are} ↓`]),
    ...use.keys.map((key) => element("th", { scope: "col" }, [element("span", {}, [key])])),
  ]);
  const grid = use.queries.map(() => use.keys.map(() => element("td")));
  const rows = grid.map((cells, y) => element("tr", {}, [
    element("th", { scope: "row" }, [use.queries[y]]), ...cells,
  ]));
  const table = element("table", { className: "map" }, [element("thead", {}, [across]), element("tbody", {}, rows)]);
  table.setAttribute("role", "grid");
  table.style.setProperty("--keys", use.keys.length);
  const show = (y, x) => {
    table.querySelectorAll(".here").forEach((label) => label.classList.remove("here"));
    across.children[x + 1].classList.add("here");
    rows[y].firstChild.classList.add("here");
    point(y, x);
  };
  walk(grid, show)(0, 0);
  grid.forEach((row, y) => row.forEach((cell, x) => cell.addEventListener("pointerenter", () => show(y, x))));
  return [table, grid];
}

function drawUse(use) {
  const layers = use.weights.map((heads) => [...heads, mean(heads)]);
  const heads = use.weights[0].length;
  let [layer, head, query, key] = [layers.length - 1, heads, 0, 0];
  const name = (y, x) => `layer ${y + 1}, ${x < heads ? `head ${x + 1}` : "mean over heads"}`;

  const title = element("h3"), told = element("output"), bar = element("canvas");
  const tell = () => {
    const weight = layers[layer][head][query][key];
    const value = weight === null ? "not visible yet" : `weight ${weight.toFixed(3)}`;
    told.value = `${use.queries[query]} → ${use.keys[key]}: ${value} (${name(layer, head)})`;
  };
  const [table, cells] = drawLarge(use, (y, x) => { [query, key] = [y, x]; tell(); });
  const [small, buttons] = drawSmall(use, layers, name);
  const draw = () => {
    paint(bar, [colours.map((_, step) => step / (colours.length - 1))]);
    buttons.forEach((row, y) => row.forEach((button, x) => paint(button.firstChild, layers[y][x])));
    choose(layer, head);
  };
  const choose = (y, x) => {
    buttons[layer][head].setAttribute("aria-pressed", "false");
    [layer, head] = [y, x];
    buttons[layer][head].setAttribute("aria-pressed", "true");
    title.textContent = name(layer, head);
    cells.forEach((row, y) => row.forEach((cell, x) => {
      const weight = layers[layer][head][y][x];
      cell.style.backgroundColor = weight === null ? "" : colour(weight);
    }));
    tell();
  };
  const enter = walk(buttons, choose);
  buttons.flat().forEach((button) => button.addEventListener("click", () => button.focus()));  // Safari does not
  enter(layer, head);
  draw();
  dark.addEventListener("change", draw);
  const scale = element("div", { className: "bar" }, ["0", bar, "1"]);
  const [left, map] = [small, table].map((wide) => element("div", { className: "scroll" }, [wide]));
  document.getElementById(use.id).append(left, element("div", { className: "large" }, [title, told, map, scale]));
}

uses.forEach(drawUse);
