"use strict";
// The page: one question for all runs, and a panel for each.

const MEANINGS = {
  weights: "How much of each value goes into the sum.",
  norms:
    "The weight times the length of what the value adds to the output (Kobayashi et al. 2020); the strongest has the full colour.",
  shifted: "Encoder-decoder weights of the step that reads a word, not of the one that writes it (Chen et al. 2020).",
  gradient:
    "For the whole model: the log-probability that a word would lose if the embedding shrank, to first order. − marks what speaks against it.",
};

/** @typedef {HTMLSelectElement} Select */

function startPage() {
  /** @type {Facts[]} */
  const runs = embedded("runs");
  const usual = /** @type {State} */ ({
    line: runs[0].directions[0].example,
    direction: 0,
    beam: BEAMS.includes(runs[0].decoding.beam_size) ? runs[0].decoding.beam_size : 5,
    units: "pieces",
    measure: "weights",
    panels: runs.map(startingPanel),
  });
  const changed = () => history.replaceState(null, "", `#${linkOf(app.state)}`);
  const languages = () => runs[0].directions[app.state.direction];
  const app = { state: stateOf(location.hash.slice(1), runs, usual), changed, languages };
  const panels = runs.map((facts, number) => new Panel(app, number, facts));
  byId("panels").append(...panels.map(({ root }) => root));
  byId("panels").style.setProperty("--runs", String(runs.length));
  const askAll = () => panels.forEach((panel) => panel.ask());
  const forget = () => app.state.panels.forEach((own) => Object.assign(own, { prefix: [], chosen: 0, cell: null }));
  const controls = offerChoices(runs[0], app, panels, () => {
    forget();
    changed();
    askAll();
  });
  addEventListener("hashchange", () => {
    app.state = stateOf(location.hash.slice(1), runs, usual);
    controls();
    askAll();
  });
  whenThemeChanges(() => panels.forEach((panel) => panel.drawUses()));
  askAll();
}

/**
 * The line and the choices above the panels. Returns a function that shows the state in them.
 * @param {Facts} facts
 * @param {App} app
 * @param {Panel[]} panels
 * @param {() => void} ask anew
 */
function offerChoices(facts, app, panels, ask) {
  const line = /** @type {HTMLTextAreaElement} */ (byId("line"));
  const [direction, beam, units, measure] = ["direction", "beam", "units", "measure"].map(
    (id) => /** @type {Select} */ (byId(id)),
  );
  direction.append(
    ...facts.directions.map(({ source, target }, number) =>
      element("option", { value: number }, `${languageName(source)} → ${languageName(target)}`),
    ),
  );
  beam.append(...BEAMS.map((size) => element("option", { value: size }, size === 1 ? "greedy" : `beam of ${size}`)));
  const show = () => {
    [line.value, direction.value, beam.value] = [app.state.line, String(app.state.direction), String(app.state.beam)];
    [units.value, measure.value] = [app.state.units, app.state.measure];
    byId("meaning").textContent = MEANINGS[app.state.measure];
  };
  const redraw = () => {
    app.changed();
    show();
    panels.filter(({ sight }) => sight).forEach((panel) => panel.draw());
  };
  line.addEventListener("input", () => {
    app.state.line = line.value;
    ask();
  });
  direction.addEventListener("change", () => {
    const before = facts.directions[app.state.direction];
    app.state.direction = Number(direction.value);
    if (line.value === before.example) app.state.line = facts.directions[app.state.direction].example;
    show();
    ask();
  });
  beam.addEventListener("change", () => {
    app.state.beam = Number(beam.value);
    ask();
  });
  units.addEventListener("change", () => {
    app.state.units = /** @type {Units} */ (units.value);
    redraw();
  });
  measure.addEventListener("change", () => {
    app.state.measure = /** @type {Measure} */ (measure.value);
    redraw();
  });
  offerLink(app);
  show();
  return show;
}

/** @param {App} app */
function offerLink(app) {
  const link = byId("link");
  link.addEventListener("click", async () => {
    app.changed();
    await navigator.clipboard?.writeText(location.href);
    link.textContent = navigator.clipboard ? "Link copied" : "The link is in the address bar";
  });
}

/**
 * The English name of a language; what is no code of one stays as it is.
 * @param {string} code
 */
function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

startPage();
