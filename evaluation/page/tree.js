"use strict";
// What a search found: its translations, and its hypotheses as a tree, with what was kept at each step.

const ROW = 26,
  LETTER = 8.2,
  GAP = 26;

/** @typedef {Branch & { piece: string }} NamedBranch */

/**
 * @param {NamedBranch[]} tree
 * @param {Translation[]} translations
 * @param {(tokens: number[]) => void} take
 */
function drawTree(tree, translations, take) {
  const children = tree.map(() => /** @type {number[]} */ ([])),
    roots = /** @type {number[]} */ ([]);
  tree.forEach(({ parent }, node) => (parent < 0 ? roots : children[parent]).push(node));
  const best = pathTo(tree, translations[0]?.node ?? -1);
  const likeliest = (/** @type {number} */ one, /** @type {number} */ other) =>
    Number(best.has(other)) - Number(best.has(one)) || tree[other].logProb - tree[one].logProb;
  [roots, ...children].forEach((nodes) => nodes.sort(likeliest));
  const depths = tree.map(() => 0);
  tree.forEach(({ parent }, node) => {
    depths[node] = parent < 0 ? 0 : depths[parent] + 1;
  });
  const lefts = columnsOf(tree, depths),
    heights = rowsOf(roots, children);
  const lines = tree.flatMap(({ parent }, node) => {
    if (parent < 0) return [];
    const start = lefts[depths[parent]] + tree[parent].piece.length * LETTER + 8,
      end = lefts[depths[node]] - 4;
    const [from, to] = [heights[parent] * ROW + ROW / 2, heights[node] * ROW + ROW / 2],
      middle = (start + end) / 2;
    const isBest = best.has(node);
    return [
      drawing("path", {
        d: `M${start} ${from}C${middle} ${from} ${middle} ${to} ${end} ${to}`,
        class: isBest ? "best" : "",
      }),
    ];
  });
  const names = tree.map(({ piece, token, logProb, score }, node) => {
    const label = `${piece}, log-probability ${logProb.toFixed(2)}, score ${score.toFixed(2)}`;
    const text = drawing(
      "text",
      {
        x: lefts[depths[node]],
        y: heights[node] * ROW + ROW / 2 + 5,
        class: best.has(node) ? "best" : "",
        role: token === EOS ? "img" : "button",
        "aria-label": label,
      },
      piece,
      drawing("title", {}, label),
    );
    if (token === EOS) return text;
    const goOn = () => take([...pathTo(tree, node)].reverse().map((step) => tree[step].token));
    text.classList.add("open");
    text.addEventListener("click", goOn);
    text.addEventListener("keydown", ({ key }) => key === "Enter" && goOn());
    return text;
  });
  climb(names, tree, children, heights, depths);
  const width = (lefts.at(-1) ?? 0) + 80,
    height = (Math.max(0, ...heights) + 1) * ROW;
  const label = `The tree of the search: ${tree.length} hypotheses; the best is ${translations[0]?.text ?? ""}`;
  return drawing(
    "svg",
    { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label },
    ...lines,
    ...names,
  );
}

/**
 * Arrow keys move the focus to the parent, to the most likely child, and up and down among hypotheses of the same
 * length. The Tab key reaches one node: the first, or the one that had the focus last.
 * @param {SVGElement[]} drawn
 * @param {NamedBranch[]} tree
 * @param {number[][]} children
 * @param {number[]} heights
 * @param {number[]} depths
 */
function climb(drawn, tree, children, heights, depths) {
  const nodes = tree.map((_, node) => node);
  const beside = (/** @type {number} */ node, /** @type {number} */ down) =>
    nodes
      .filter((other) => depths[other] === depths[node] && (heights[other] - heights[node]) * down > 0)
      .sort((one, other) => (heights[one] - heights[other]) * down)[0];
  drawn.forEach((each, node) => {
    each.tabIndex = node ? -1 : 0;
    each.addEventListener("focus", () => drawn.forEach((other) => (other.tabIndex = other === each ? 0 : -1)));
    each.addEventListener("keydown", (event) => {
      const [down, right] = STEPS[event.key] ?? [0, 0];
      const next = right < 0 ? tree[node].parent : right > 0 ? children[node][0] : down ? beside(node, down) : undefined;
      if (next === undefined || next < 0) return;
      event.preventDefault();
      drawn[next].focus();
    });
  });
}

/**
 * Where each depth begins: after the longest piece of the depth before.
 * @param {NamedBranch[]} tree
 * @param {number[]} depths
 */
function columnsOf(tree, depths) {
  const longest = /** @type {number[]} */ ([]);
  tree.forEach(({ piece }, node) => {
    longest[depths[node]] = Math.max(longest[depths[node]] ?? 0, piece.length);
  });
  let left = 4;
  return longest.map((letters) => (left += letters * LETTER + GAP) - letters * LETTER - GAP);
}

/**
 * The row of each node: leaves below each other, parents beside their first child.
 * @param {number[]} roots
 * @param {number[][]} children
 */
function rowsOf(roots, children) {
  const rows = children.map(() => 0);
  let free = 0;
  const place = (/** @type {number} */ node) => {
    rows[node] = free;
    children[node].forEach(place);
    if (!children[node].length) free++;
  };
  roots.forEach(place);
  return rows;
}

/**
 * The nodes from one up to the root.
 * @param {NamedBranch[]} tree
 * @param {number} node
 * @returns {Set<number>}
 */
function pathTo(tree, node) {
  const path = new Set(/** @type {number[]} */ ([]));
  for (let at = node; at >= 0; at = tree[at].parent) path.add(at);
  return path;
}

/**
 * The translations that a search found, best first, with their scores.
 * @param {Panel} panel
 */
function drawBest(panel) {
  const rows = panel.translations.map(({ text, score, logProb, ended }, number) =>
    element(
      "tr",
      {},
      element(
        "td",
        {},
        action(text || "(nothing)", () => panel.choose(number), {
          "aria-pressed": String(number === panel.own.chosen),
        }),
      ),
      element("td", { class: "number" }, score.toFixed(3)),
      element("td", { class: "number" }, logProb.toFixed(3)),
      element("td", {}, ended ? "yes" : "cut at the limit"),
    ),
  );
  const names = ["translation", "score", "log-probability", "ended"].map((name) =>
    element("th", { scope: "col" }, name),
  );
  return element(
    "table",
    { class: "table" },
    element("thead", {}, element("tr", {}, ...names)),
    element("tbody", {}, ...rows),
  );
}
