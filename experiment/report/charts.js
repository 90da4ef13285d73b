// Charts of curves and of scores with intervals, as drawings; base.js comes before.

/**
 * A line of a chart: its place among the runs, points, of which null has none, and the places before which it breaks.
 * @typedef {{ run: number, x: Numbers, y: Numbers, breaks: number[], thin: boolean }} Line
 */
/** @typedef {(number | null)[]} Numbers */
/** @typedef {{ x: number, y: number }} Point */

const HEIGHT = 240, MARGIN = { top: 12, right: 20, bottom: 28, left: 52 };
const DASHES = ["none", "6 3", "2 3"];  // of the first eight runs, the next eight …
const COLOURS = 8;  // in report.css

/** @param {number} value */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return size > 0 && size < 1e-3 ? value.toExponential(1).replace(".0e", "e") : String(+value.toPrecision(4));
}

/**
 * Round numbers between two limits, some five of them.
 * @param {number} low
 * @param {number} high
 */
function ticks(low, high) {
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, place) => (first + place) * step);
}

/**
 * 1, 2 and 5 times the powers of ten between two limits, or the powers alone if these are many.
 * @param {number} low
 * @param {number} high
 */
function logTicks(low, high) {
  const powers = Array.from({ length: 40 }, (_, place) => 10 ** (place - 20));
  const all = powers.flatMap((power) => [power, 2 * power, 5 * power]).filter((each) => each >= low && each <= high);
  return all.length > 8 ? all.filter((each) => powers.includes(each)) : all;
}

/**
 * The axes of a chart, and functions from values to pixels.
 * @param {number} width
 * @param {[number, number]} across
 * @param {[number, number]} up
 * @param {boolean} log
 */
function axes(width, across, up, log) {
  const scale = log ? Math.log : (/** @type {number} */ value) => value;
  const wide = width - MARGIN.left - MARGIN.right, high = HEIGHT - MARGIN.top - MARGIN.bottom;
  const share = (/** @type {number} */ value, /** @type {[number, number]} */ [low, top]) => (value - low) / (top - low || 1);
  const limits = /** @type {[number, number]} */ (up.map(scale));
  const toX = (/** @type {number} */ value) => MARGIN.left + wide * share(value, across);
  const toY = (/** @type {number} */ value) => MARGIN.top + high * (1 - share(scale(value), limits));
  const svg = drawing("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
  for (const value of log ? logTicks(...up) : ticks(...up)) {
    const y = toY(value);
    svg.append(drawing("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }),
      drawing("text", { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" }, short(value)));
  }
  return { svg, toX, toY };
}

/**
 * @param {number} run
 * @returns {string}
 */
function runClass(run) {
  return `run run-${run % COLOURS}`;
}

/** @param {number} run */
function dash(run) {
  return DASHES[Math.floor(run / COLOURS) % DASHES.length];
}

/**
 * The points of a line that have a place on these axes.
 * @param {Line} line
 * @param {number} from
 * @param {boolean} log
 * @returns {Point[][]}
 */
function pieces(line, from, log) {
  /** @type {Point[][]} */
  const found = [[]];
  line.x.forEach((x, place) => {
    const y = line.y[place];
    if (line.breaks.includes(place) || y === null) found.push([]);
    if (x !== null && y !== null && x >= from && (!log || y > 0)) found[found.length - 1].push({ x, y });
  });
  return found.filter((piece) => piece.length);
}

/**
 * A chart of lines: points at which the reader points are read out below it. It is drawn anew when its width changes.
 * @param {string} title
 * @param {string} unit of the x axis
 * @param {Line[]} lines
 * @param {string[]} names of the runs
 * @param {number} part of the x axis that is left out: with 0, a linear y axis begins at zero
 * @param {boolean} log
 */
function lineChart(title, unit, lines, names, part, log) {
  const last = Math.max(0, ...lines.flatMap((line) => line.x.map(Number)));
  const drawn = lines.map((line) => ({ line, pieces: pieces(line, part * last, log) }));
  const points = drawn.flatMap((each) => each.pieces.flat());
  const heading = element("figcaption", {}, title);
  if (!points.length) return element("figure", {}, heading, element("p", { class: "quiet" }, "No value yet."));

  const values = points.map((point) => point.y), places = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const space = 0.05 * (high - low) || 0.1 * Math.abs(high) || 1;
  /** @type {[number, number]} */
  const up = log ? [low / 1.05, high * 1.05] : [part || low < 0 ? low - space : 0, high + space];
  /** @type {[number, number]} */
  const across = [part * last, last];

  const frame = element("div", { class: "frame", tabindex: 0, role: "img" });
  const told = element("output");
  let at = places.length - 1, toX = (/** @type {number} */ _) => 0, cursor = drawing("line", { class: "cursor" });
  const tell = () => {
    const x = places[at], pixel = toX(x);
    cursor.setAttribute("x1", String(pixel));
    cursor.setAttribute("x2", String(pixel));
    const found = drawn.flatMap(({ line, pieces }) =>
      pieces.flat().filter((point) => point.x === x).map((point) => ({ line, y: point.y })));
    told.replaceChildren(`${short(x)} ${unit}: `, ...found.flatMap(({ line, y }, place) => [
      place ? ", " : "", element("span", { class: runClass(line.run) }, names.length > 1 ? `${names[line.run]} ` : ""),
      short(y), line.thin ? " in training" : ""]));
  };
  const draw = () => {
    const width = Math.max(260, frame.clientWidth);
    const made = axes(width, across, up, log);
    toX = made.toX;
    for (const value of ticks(...across)) {
      made.svg.append(drawing("text", { x: toX(value), y: HEIGHT - 10, "text-anchor": "middle" }, short(value)));
    }
    for (const { line, pieces } of drawn) {
      for (const piece of pieces) {
        const d = piece.map((point, place) => `${place ? "L" : "M"}${toX(point.x).toFixed(1)} ${made.toY(point.y).toFixed(1)}`);
        const style = { class: `${runClass(line.run)} ${line.thin ? "thin" : ""}`, "stroke-dasharray": dash(line.run) };
        made.svg.append(drawing("path", { ...style, d: d.join("") }));
        if (!line.thin && piece.length < 100) {
          made.svg.append(...piece.map((point) => drawing("circle", {
            class: runClass(line.run), cx: toX(point.x), cy: made.toY(point.y), r: 2.5 })));
        }
      }
    }
    cursor = drawing("line", { class: "cursor", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
    made.svg.append(cursor);
    frame.replaceChildren(made.svg);
    tell();
  };
  frame.addEventListener("pointermove", (event) => {
    const x = event.clientX - frame.getBoundingClientRect().left;
    at = places.reduce((best, place, i) => (Math.abs(toX(place) - x) < Math.abs(toX(places[best]) - x) ? i : best), 0);
    tell();
  });
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    at = Math.min(places.length - 1, Math.max(0, at + step));
    tell();
  });
  frame.setAttribute("aria-label", `${title}: from ${short(values[0])} to ${short(values[values.length - 1])}`);
  draw();
  new ResizeObserver(draw).observe(frame);
  return element("figure", {}, heading, frame, told);
}

/**
 * A chart of groups, in which each run has a score with an interval.
 * @param {string[]} groups
 * @param {[number, number, number][][]} scores of each group and run: score, low, high
 * @param {number[]} runs the places of these runs among all
 */
function intervalChart(groups, scores, runs) {
  const frame = element("div", { class: "frame", "aria-hidden": "true" });
  const all = scores.flat(2);
  /** @type {[number, number]} */
  const up = [Math.min(...all) < 40 ? 0 : Math.min(...all) - 5, Math.min(100, Math.max(...all) + 2)];
  const draw = () => {
    const { svg, toX, toY } = axes(Math.max(260, frame.clientWidth), [0, groups.length], up, false);
    groups.forEach((group, place) => {
      svg.append(drawing("text", { x: toX(place + 0.5), y: HEIGHT - 10, "text-anchor": "middle" }, group));
      scores[place].forEach(([score, low, high], i) => {
        const x = toX(place + (i + 1) / (scores[place].length + 1));
        svg.append(drawing("line", { class: runClass(runs[i]), x1: x, x2: x, y1: toY(low), y2: toY(high) }),
          drawing("circle", { class: runClass(runs[i]), cx: x, cy: toY(score), r: 4 }));
      });
    });
    frame.replaceChildren(svg);
  };
  draw();
  new ResizeObserver(draw).observe(frame);
  return element("figure", {}, frame);
}
