"use strict";
// What every page shares. Text goes into a page by append() alone, never as HTML.

/** @typedef {Record<string, string | number | boolean>} Attributes */
/** @typedef {Node | string} Child */

/**
 * An element with attributes and children, of which strings become text. Names of attributes stand in the code; a value
 * false leaves its attribute out.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
function element(name, attributes = {}, ...children) {
  return dress(document.createElement(name), attributes, children);
}

/**
 * The same for an element of a drawing.
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Name]}
 */
function drawing(name, attributes = {}, ...children) {
  return dress(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/**
 * @template {Element} Made
 * @param {Made} made
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {Made}
 */
function dress(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/**
 * The element of a page that has this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/**
 * The value that embed() of page.py has put into the page.
 * @param {string} name
 * @returns {any}
 */
function embedded(name) {
  return JSON.parse(byId(name).textContent ?? "");
}

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Whether the paper is dark now. */
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : systemIsDark.matches;
}

/**
 * Call draw() whenever the paper becomes light or dark; what style sheets colour needs no such call.
 * @param {() => void} draw
 */
function whenThemeChanges(draw) {
  document.addEventListener("themechange", draw);
}

function offerThemes() {
  const button = byId("theme");
  const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const changed = () => { tell(); document.dispatchEvent(new Event("themechange")); };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    changed();
  });
  systemIsDark.addEventListener("change", changed);
  button.hidden = false;
  tell();
}

offerThemes();

// Matplotlib's magma, from weight 0 to weight 1: perceptually uniform, and weak weights stay visible.
const MAGMA = [
  [252, 253, 191], [253, 222, 160], [254, 191, 132], [254, 159, 109], [250, 127, 94], [241, 96, 93], [222, 73, 104],
  [196, 60, 117], [168, 50, 125], [140, 41, 129], [114, 31, 129], [87, 21, 126], [59, 15, 112], [32, 17, 75],
  [11, 9, 36], [0, 0, 4],
];

/**
 * The colour of a weight from 0 to 1; on dark paper the scale is turned round, so that 0 is always near the paper.
 * @param {number} weight
 * @returns {string}
 */
function heat(weight) {
  const bounded = Math.min(1, Math.max(0, weight));
  const place = (isDark() ? 1 - bounded : bounded) * (MAGMA.length - 1);
  const [low, high] = [MAGMA[Math.floor(place)], MAGMA[Math.ceil(place)]];
  return `rgb(${low.map((channel, i) => Math.round(channel + (place % 1) * (high[i] - channel))).join(" ")})`;
}

/**
 * Paint one pixel per cell in the colour of its weight; a cell without a weight stays transparent.
 * @param {HTMLCanvasElement} canvas
 * @param {(number | null)[][]} weights
 */
function paint(canvas, weights) {
  [canvas.width, canvas.height] = [weights[0]?.length ?? 1, weights.length || 1];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  weights.forEach((row, y) => row.forEach((weight, x) => {
    if (weight === null) return;
    context.fillStyle = heat(weight);
    context.fillRect(x, y, 1, 1);
  }));
}

/** @type {Record<string, [number, number]>} */
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Arrow keys move the focus over rows of elements. The Tab key reaches one of them: the first, or the one that had the
 * focus last. Returns a function that makes another one reachable and calls arrive().
 * @param {HTMLElement[][]} grid
 * @param {(y: number, x: number) => void} [arrive]
 */
function walk(grid, arrive) {
  let [current] = grid.flat();
  const enter = (/** @type {number} */ y, /** @type {number} */ x) => {
    current.tabIndex = -1;
    current = grid[y][x];
    current.tabIndex = 0;
    arrive?.(y, x);
  };
  grid.forEach((row, y) => row.forEach((item, x) => {
    item.tabIndex = item === current ? 0 : -1;
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
