// The report on runs: base.js, maps.js, charts.js and sentences.js come before.

/** @typedef {{ title: string, note: string, header: string[], rows: string[][] }} Table */
/** @typedef {{ valid: Record<string, Numbers>, train: Record<string, Numbers>, breaks: number[] }} Curves */
/** @typedef {Record<string, any>} Facts what a JSON file of a run has, which may be anything */
/**
 * @typedef {{ name: string, missing: string, curves: Curves, config: Facts, parameters: number | null, data: Facts,
 *   environment: Facts, reports: Record<string, Facts> }} Run
 * @typedef {{ runs: Run[], defaults: Facts,
 *   comparison: { problem: string, verdicts?: Table, against?: { name: string, tables: Table[] }[] },
 *   set: string, scored: number[], sentences: Row[],
 *   lengths: { words: string, sentences: number, scores: [number, number, number][] }[],
 *   attention: { problem: string, sentences: { source: string, translation: string, uses: Use[] }[] },
 *   cards: { runs: string[], problem: string, tables: Table[] }[], commands: string[] }} Contents
 */

/** @type {Contents} */
const contents = embedded("contents");
const names = contents.runs.map((run) => run.name);
const scored = contents.scored.map((run) => ({ run, name: names[run] }));

const UNKNOWN = "–";
/** @type {[string, string, boolean][]} title, key, and whether the axis is logarithmic */
const CURVES = [
  ["BLEU, validation set", "bleu", false], ["Cross-entropy in nats, validation and (thin) training", "cross_entropy", true],
  ["Learning rate", "learning_rate", false], ["Gradient norm", "gradient_norm", true], ["Tokens per second", "tokens_per_second", false],
];

/** @param {unknown} value */
function count(value) {
  return typeof value === "number" ? Math.round(value).toLocaleString("en") : UNKNOWN;
}

/** @param {unknown} value */
function score(value) {
  return typeof value === "number" ? value.toFixed(2) : "";
}

/**
 * A value as a config has it.
 * @param {unknown} value
 * @returns {string}
 */
function text(value) {
  return Array.isArray(value) ? `[${value.map(text).join(", ")}]` : String(value ?? "");
}

/** @param {Run} run */
function trainingRow({ name, curves: { valid, train, breaks }, config, parameters, data, environment }) {
  const reached = Math.max(0, ...[...valid.step, ...train.step].map(Number));
  const minutes = Math.max(0, ...[...valid.minutes, ...train.minutes].map(Number));
  const from = Math.max(0, ...breaks), comparable = valid.bleu.slice(from).map(Number);
  const best = from + comparable.lastIndexOf(Math.max(...comparable));
  return [
    name, `${config["model.encoder_layers"]} + ${config["model.decoder_layers"]} layers of width ${config["model.d_model"]}`,
    count(parameters), config["data.train"].join(", "), `${config["data.source"]} to ${config["data.target"]}`,
    count(data.training_pairs), `${count(reached)} of ${config["training.steps"] ? count(config["training.steps"]) : "any"}`,
    minutes.toFixed(1), best >= 0 ? `${score(valid.bleu[best])} at update ${count(valid.step[best])}` : UNKNOWN,
    [environment.devices ?? UNKNOWN].flat().join(", "),
  ];
}

/** @returns {Table} */
function trainingTable() {
  const header = ["run", "model", "parameters", "trained on", "languages", "pairs", "updates", "minutes",
    "best validation BLEU", "device"];
  return { title: "", note: "", header, rows: contents.runs.map(trainingRow) };
}

/**
 * Every report of every run; what a report lacks, as those of older versions do, is left empty.
 * @returns {Table}
 */
function scoresTable() {
  const header = ["run", "set", "update", "BLEU", "interval", "chrF", "sources", "search", "signatures"];
  const rows = contents.runs.flatMap(({ name, reports }) => Object.entries(reports).map(([set, report]) => [
    name, set, count(report.step), score(report.bleu),
    report.bleu_interval ? `${score(report.bleu_interval.low)} to ${score(report.bleu_interval.high)}` : "",
    score(report.chrf), count(report.sources), `${text(report.decoding?.search)} ${text(report.decoding?.beam_size)}`,
    `${text(report.signature)} ${text(report.chrf_signature)}`,
  ]));
  const note = "Intervals of 95 % are for this model and other sentences; valid is the set of the last validation.";
  return { title: "", note, header, rows };
}

/**
 * The keys that a run does not leave at their default.
 * @returns {Table}
 */
function settingsTable() {
  const { defaults, runs } = contents;
  const changed = Object.keys(defaults).filter((key) => runs.some(({ config }) => text(config[key]) !== text(defaults[key])));
  const rows = changed.map((key) => [key, text(defaults[key]), ...runs.map(({ config }) => text(config[key]))]);
  return { title: "Settings", note: "All other keys have their defaults.", header: ["key", "default", ...names], rows };
}

/**
 * What the runs ran on; settings that no run has are left out.
 * @returns {Table}
 */
function environmentTable() {
  const facts = contents.runs.map(({ environment }) => /** @type {Facts} */ ({ ...environment, packages: "", ...environment.packages }));
  const keys = [...new Set(facts.flatMap(Object.keys))].filter((key) => facts.some((fact) => text(fact[key])));
  const rows = keys.map((key) => [key, ...facts.map((fact) => text(fact[key]))]);
  return { title: "Environment", note: "", header: ["", ...names], rows };
}

/**
 * @param {string} title
 * @param {...Child} children
 */
function section(title, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, "-");
  byId("contents-list").append(element("a", { href: `#${id}` }, title), " ");
  byId("report").append(element("section", { id }, element("h2", {}, title), ...children));
}

/** @param {string} text */
function quiet(text) {
  return text ? [element("p", { class: "quiet" }, text)] : [];
}

/** @param {string} cell */
function verdictClass(cell) {
  return /(^|: )better$/.test(cell) ? "good" : /(^|: )worse$/.test(cell) ? "bad" : "";
}

/**
 * A table; numbers stand to the right, and one row alone becomes a list of its cells.
 * @param {Table} table
 */
function drawTable({ header, rows }) {
  const lists = rows.length === 1 && header.length > 4;
  const numeric = header.map((_, place) => rows.every((row) => /^[-+–]?[\d.,]*\s?%?$/.test(row[place])));
  const cell = (/** @type {string} */ text, /** @type {number} */ place) =>
    element("td", { class: `${numeric[place] && !lists ? "number" : text.length < 28 ? "short" : ""} ${verdictClass(text)}` }, text);
  const body = lists
    ? header.map((name, place) => element("tr", {}, element("th", { scope: "row" }, name), cell(rows[0][place], place)))
    : rows.map((row) => element("tr", {}, ...row.map(cell)));
  const head = element("tr", {}, ...header.map((name, place) =>
    element("th", { scope: "col", class: numeric[place] ? "number" : "" }, name)));
  const parts = lists || !header.some(Boolean) ? [] : [element("thead", {}, head)];
  return element("div", { class: "scroll", tabindex: 0 },
    element("table", { class: "table" }, ...parts, element("tbody", {}, ...body)));
}

/** @param {Table} table */
function titled(table) {
  return [element("h3", {}, table.title), ...quiet(table.note), drawTable(table)];
}

/**
 * @param {string} label
 * @param {[string, string][]} choices
 */
function choice(label, choices) {
  return element("select", { "aria-label": label }, ...choices.map(([value, text]) => element("option", { value }, text)));
}

/**
 * What a run is drawn in, and a button that hides it.
 * @param {(hidden: Set<number>) => void} changed
 */
function legend(changed) {
  /** @type {Set<number>} */
  const hidden = new Set();
  return names.map((name, run) => {
    const swatch = drawing("svg", { width: 28, height: 8, "aria-hidden": "true" },
      drawing("path", { class: runClass(run), d: "M0 4H28", "stroke-dasharray": dash(run) }));
    const button = element("button", { type: "button", class: "key", "aria-pressed": "true" }, swatch, " ", name);
    button.addEventListener("click", () => {
      if (!hidden.delete(run)) hidden.add(run);
      button.setAttribute("aria-pressed", String(!hidden.has(run)));
      changed(hidden);
    });
    return button;
  });
}

function drawCurves() {
  const x = choice("x axis", [["step", "by updates"], ["minutes", "by minutes"], ["tokens", "by tokens"]]);
  const part = choice("part", [["0", "whole run"], ["0.5", "last half"], ["0.9", "last tenth"]]);
  const charts = element("div", { class: "charts" });
  let hidden = /** @type {Set<number>} */ (new Set());
  const draw = () => charts.replaceChildren(...CURVES.map(([title, key, log]) => {
    const lines = contents.runs.flatMap(({ curves }, run) => (["train", "valid"]).flatMap((kind) => {
      const values = kind === "train" ? curves.train : curves.valid;
      if (!values[key] || hidden.has(run)) return [];
      const thin = kind === "train" && key === "cross_entropy";
      return [{ run, x: values[x.value], y: values[key], breaks: kind === "valid" ? curves.breaks : [], thin }];
    }));
    return lineChart(title, x.value === "step" ? "updates" : x.value, lines, names, Number(part.value), log);
  }));
  const keys = names.length > 1 ? legend((now) => { hidden = now; draw(); }) : [];
  [x, part].forEach((select) => select.addEventListener("change", draw));
  draw();
  return [element("div", { class: "controls" }, x, part, ...keys), charts];
}

function drawLengths() {
  const { lengths } = contents;
  const header = ["words", "sentences", ...scored.flatMap(({ name }) => [scored.length > 1 ? name : "BLEU", "interval"])];
  const rows = lengths.map((group) => [group.words, String(group.sentences), ...group.scores.flatMap(([score, low, high]) =>
    [score.toFixed(2), `${low.toFixed(2)} to ${high.toFixed(2)}`])]);
  return [intervalChart(lengths.map((group) => group.words), lengths.map((group) => group.scores), contents.scored),
    drawTable({ title: "", note: "", header, rows })];
}

function drawAttention() {
  const { problem, sentences } = contents.attention;
  const place = element("div");
  const chosen = choice("sentence", sentences.map((each, number) => [String(number), each.source]));
  const draw = () => {
    const each = sentences[Number(chosen.value)];
    place.replaceChildren(element("p", { class: "translation" }, each.translation),
      ...each.uses.flatMap((use) => [element("h3", {}, use.title), ...drawUse(use)]));
  };
  chosen.addEventListener("change", draw);
  if (sentences.length) draw();
  return [...quiet(problem), ...(sentences.length ? [element("div", { class: "controls" }, chosen), place] : [])];
}

function drawReport() {
  const scores = scoresTable();
  const missing = contents.runs.filter((run) => run.missing).map((run) =>
    element("p", { class: "missing" }, `${run.name} has no scores to show here: ${run.missing}.`));
  section("Training", drawTable(trainingTable()));
  section("Scores", ...missing, ...(scores.rows.length ? [...quiet(scores.note), drawTable(scores)] : []));
  const { problem, verdicts, against } = contents.comparison;
  if (problem || verdicts) {
    section("Comparison", ...quiet(problem), ...(verdicts ? [...quiet(verdicts.note), drawTable(verdicts)] : []),
      ...(against ?? []).map((each) => element("details", {}, element("summary", {}, `Where ${each.name} differs`),
        ...each.tables.flatMap(titled))));
  }
  section("Curves", ...drawCurves());
  if (scored.length) {
    section("BLEU by length of the source", ...quiet(`Of the ${contents.set} set, with intervals of 95 %.`), ...drawLengths());
    section("Sentences", ...quiet(
      `Of the ${contents.set} set, with chrF. In a translation, what the nearest reference lacks is marked, and in a `
      + "reference, what no translation has."), ...drawSentences(contents.sentences, scored));
  }
  if (contents.attention.problem || contents.attention.sentences.length) {
    section("Attention", ...quiet(`Of ${scored[0].name}, in sentences from the worst to the best.`), ...drawAttention());
  }
  section("Data", ...contents.cards.flatMap((card) => [
    ...(contents.cards.length > 1 ? [element("h3", {}, card.runs.join(", "))] : []),
    ...quiet(card.problem), ...card.tables.flatMap(titled)]));
  section("Settings and environment", ...titled(settingsTable()), ...titled(environmentTable()));
  section("To repeat it", element("pre", { tabindex: 0 }, contents.commands.join("\n")));
}

drawReport();
