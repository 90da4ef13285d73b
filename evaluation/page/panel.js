"use strict";
// One run: its worker, its translation, and what there is to see and to change.

/** @typedef {{ state: State, changed: () => void, languages: () => { source: string, target: string } }} App */

/**
 * @param {string} text
 * @param {() => void} act
 * @param {Attributes} [attributes]
 */
function action(text, act, attributes = {}) {
  const button = element("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", act);
  return button;
}

/** @param {number} share */
function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/**
 * A share as style sheets write it.
 * @param {number} share
 */
function cssShare(share) {
  return `${(100 * share).toFixed(1)}%`;
}

class Panel {
  /**
   * @param {App} app
   * @param {number} number
   * @param {Facts} facts
   */
  constructor(app, number, facts) {
    this.app = app;
    this.number = number;
    this.facts = facts;
    this.id = 0; // of the newest question
    this.derived = 0; // the question for which a gradient was asked
    this.asked = 0;
    this.isWaiting = false;
    /** @type {number[]} */
    this.source = [];
    /** @type {Translation[]} */
    this.translations = [];
    /** @type {NamedBranch[]} */
    this.tree = [];
    /** @type {Sight | undefined} */
    this.sight = undefined;
    /** @type {number[][] | undefined} */
    this.gradient = undefined;
    const part = (/** @type {string} */ name) => element("div", { class: name });
    this.text = element("p", { class: "translation", "aria-live": "polite" });
    this.note = element("p", { class: "quiet note" });
    this.before = element("p", { class: "quiet before" });
    this.parts = {
      changes: part("changes"), words: part("words"), alternatives: part("alternatives"), best: part("best"),
      tree: element("div", { class: "scroll high", tabindex: 0, role: "region", "aria-label": "the tree of the search" }), uses: part("uses"), cell: part("cell"), costs: part("costs"),
    };
    this.root = this.arrange();
    this.drawCosts();
    this.worker = new Worker(URL.createObjectURL(new Blob([embedded("worker")], { type: "text/javascript" })));
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.postMessage({ id: 0, kind: "start", facts, content: byId(`weights${number}`).textContent });
  }

  /** The parts in the order of the page. */
  arrange() {
    const { changes, words, alternatives, best, tree, uses, cell, costs } = this.parts;
    const title = `${this.facts.name}, ${this.facts.bits} bits a weight`;
    const more = element("details", {}, element("summary", {}, "The search: translations and tree"), best, tree);
    const heads = element("details", {}, element("summary", {}, "What each head is worth"), costs);
    return element("section", { class: "panel", "aria-label": title },
      element("h2", {}, this.app.state.panels.length > 1 ? title : "Translation"),
      this.text, this.note, changes, words, alternatives, more, uses, cell, this.facts.costs.length ? heads : "");
  }

  get own() {
    return this.app.state.panels[this.number];
  }

  /** Ask for the translation of what is typed. */
  ask() {
    const { line, beam } = this.app.state, { prefix, changes, chosen } = this.own;
    const { source, target } = this.app.languages();
    const direction = this.facts.directions.findIndex((each) => each.source === source && each.target === target);
    this.gradient = undefined;
    this.asked = performance.now();
    this.isWaiting = true;
    const question = { line, direction, beam, prefix, changes, chosen, isChanged: isChanged(changes) };
    this.worker.postMessage({ id: ++this.id, kind: "translate", question });
    this.setBusy(true);
    this.drawChanges();
  }

  /** Ask about one of the translations. */
  askToLook() {
    const { tokens } = this.translations[this.own.chosen];
    this.gradient = undefined;
    this.setBusy(true);
    this.worker.postMessage({ id: ++this.id, kind: "look", source: this.source, target: tokens, changes: this.own.changes });
  }

  /** @param {any} answer */
  hear(answer) {
    if (answer.id !== this.id) return;
    switch (answer.kind) {
      case "partial":
        this.hearPart(answer.text);
        break;
      case "translated":
        [this.source, this.translations, this.tree] = [answer.source, answer.translations, answer.tree];
        if (this.own.chosen >= this.translations.length) this.own.chosen = 0;
        this.drawTranslations();
        this.setBusy(this.translations.length > 0);
        break;
      case "look":
        this.sight = answer.sight;
        this.draw();
        this.setBusy(!answer.isLast);
        break;
      case "gradient":
        this.gradient = answer.gradient;
        this.drawUses();
        break;
      case "cell":
        this.drawCell(answer.cell);
        break;
      case "before":
        this.before.textContent = answer.text === this.text.textContent ? "the translation stays as it was" : `without the changes: ${answer.text}`;
        this.setBusy(false);
        break;
      case "failed":
        this.note.textContent = answer.problem;
        this.setBusy(false);
        break;
      default:
        throw new Error(`an answer of the kind ${answer.kind}`);
    }
  }

  /** @param {boolean} isBusy */
  setBusy(isBusy) {
    this.root.setAttribute("aria-busy", String(isBusy));
  }

  /** @param {string} text */
  hearPart(text) {
    this.text.textContent = `${text} …`;
    if (!this.isWaiting || !text) return;
    this.isWaiting = false;
    this.note.textContent = `first word after ${Math.round(performance.now() - this.asked)} ms`;
  }

  drawTranslations() {
    const { chosen } = this.own, [found] = this.translations.slice(chosen), { best, tree } = this.parts;
    this.text.textContent = found?.text ?? "";
    if (!found) {
      this.sight = undefined;
      for (const part of [this.parts.words, this.parts.alternatives, best, tree, this.parts.uses, this.parts.cell]) part.replaceChildren();
      this.note.textContent = "";
      return;
    }
    const rows = this.translations.map(({ text, score, logProb, ended }, number) => element("tr", {},
      element("td", {}, action(text || "(nothing)", () => this.choose(number), { "aria-pressed": String(number === chosen) })),
      element("td", { class: "number" }, score.toFixed(3)), element("td", { class: "number" }, logProb.toFixed(3)),
      element("td", {}, ended ? "yes" : "cut at the limit")));
    const names = ["translation", "score", "log-probability", "ended"].map((name) => element("th", { scope: "col" }, name));
    best.replaceChildren(element("table", { class: "table" }, element("thead", {}, element("tr", {}, ...names)), element("tbody", {}, ...rows)));
    tree.replaceChildren(drawTree(this.tree, this.translations, (tokens) => this.goOnFrom(tokens)));
  }

  /** @param {number} number */
  choose(number) {
    this.own.chosen = number;
    this.drawTranslations();
    this.askToLook();
    this.app.changed();
  }

  /** @param {number[]} prefix */
  goOnFrom(prefix) {
    [this.own.prefix, this.own.chosen] = [prefix, 0];
    this.app.changed();
    this.ask();
  }

  draw() {
    const { measure } = this.app.state;
    this.drawWords();
    this.drawUses();
    if (measure === "gradient") this.askForGradient();
    if (this.own.cell) this.askForCell();
    else this.parts.cell.replaceChildren();
  }

  askForGradient() {
    if (this.gradient || !this.sight || this.derived === this.id) return;
    this.derived = this.id;
    const { tokens } = this.translations[this.own.chosen];
    this.worker.postMessage({ id: this.id, kind: "gradient", source: this.source, target: tokens, changes: this.own.changes });
  }

  askForCell() {
    const { cell } = this.own;
    if (!cell) return;
    const { use, layer, head, row, key } = cell, { stack, use: name } = USES[use];
    this.worker.postMessage({ id: this.id, kind: "cell", place: { stack, use: name, layer }, head, row, key });
  }

  /** Both sentences as chips: who points at one sees what it reads. */
  drawWords() {
    const { sight } = this, { units } = this.app.state, { words, alternatives } = this.parts;
    if (!sight) return;
    alternatives.replaceChildren();
    const sources = spansOf(sight.source, units), targets = spansOf(sight.outputs, units);
    const read = sources.map(({ text }) => element("button", { type: "button", class: "chip" }, text));
    const written = targets.map((span) => {
      const share = sight.shares.slice(span.from, span.to).reduce((sum, each) => sum + each, 0) / (span.to - span.from);
      const probability = probabilityOf(span, sight.chosen);
      const label = `${span.text}: probability ${percent(probability)}, ${percent(share)} of it from the source`;
      const chip = element("button", { type: "button", class: "chip", title: label, "aria-expanded": "false" },
        span.text, element("small", {}, percent(probability)), element("small", { class: "share" }, `${percent(share)} from the source`));
      chip.style.setProperty("--share", cssShare(share));
      chip.addEventListener("click", () => this.offer(span, chip, written));
      return chip;
    });
    const point = (/** @type {number} */ use, /** @type {number} */ row, /** @type {HTMLElement[]} */ chips) => {
      const values = this.chosenMap(use)?.map.values[row] ?? [];
      const largest = values.reduce((/** @type {number} */ most, value) => Math.max(most, Math.abs(value ?? 0)), 1e-9);
      chips.forEach((chip, key) => chip.style.setProperty("--read", cssShare(0.45 * Math.abs(values[key] ?? 0) / largest)));
    };
    const both = [...read, ...written];
    const leave = () => both.forEach((chip) => chip.style.setProperty("--read", "0%"));
    const listen = (/** @type {HTMLElement} */ chip, /** @type {() => void} */ enter) => {
      for (const kind of ["pointerenter", "focus"]) chip.addEventListener(kind, () => { leave(); enter(); });
      for (const kind of ["pointerleave", "blur"]) chip.addEventListener(kind, leave);
    };
    read.forEach((chip, row) => listen(chip, () => point(0, row, read)));
    written.forEach((chip, row) => listen(chip, () => { point(2, row, read); point(1, row, [element("i"), ...written.slice(0, -1)]); }));
    walk([read, written]);
    words.replaceChildren(
      element("p", { class: "quiet" }, "Point at a word to see what the chosen heads read for it. Under each word of the translation: its probability, and the share of the source in it. Click on one for other words."),
      element("div", { class: "chips" }, ...read), element("div", { class: "chips" }, ...written));
  }

  /**
   * Other tokens in the place of the first of a word's.
   * @param {Span} span
   * @param {HTMLElement} chip
   * @param {HTMLElement[]} chips
   */
  offer({ from }, chip, chips) {
    const { tokens } = this.translations[this.own.chosen], isOpen = chip.getAttribute("aria-expanded") === "true";
    chips.forEach((other) => other.setAttribute("aria-expanded", "false"));
    if (isOpen || !this.sight) return this.parts.alternatives.replaceChildren();
    chip.setAttribute("aria-expanded", "true");
    const choices = this.sight.alternatives[from].map(({ token, piece, probability }) => (
      action(`${piece} ${percent(probability)}`, () => this.goOnFrom([...tokens.slice(0, from), token]), token === tokens[from] ? { "aria-pressed": "true" } : {})
    ));
    this.parts.alternatives.replaceChildren(element("p", { class: "quiet" }, `Instead of ${this.sight.outputs[from]}, and on from there:`), ...choices);
  }

  /**
   * The map that is chosen of a use.
   * @param {number} use
   * @returns {HeadMap | undefined}
   */
  chosenMap(use) {
    if (!this.sight) return undefined;
    const maps = mapsOf(use, this.sight, this.gradient, this.app.state, this.own.changes), chosen = this.own.heads[use];
    return maps.flat().find(({ choice }) => choice.layer === chosen.layer && choice.head === chosen.head) ?? maps[0]?.[0];
  }

  drawUses() {
    const { sight } = this;
    if (sight) this.parts.uses.replaceChildren(...USES.map((_, use) => this.drawUse(use, sight)));
  }

  /**
   * @param {number} use
   * @param {Sight} sight
   */
  drawUse(use, sight) {
    const { title, term } = USES[use], { state } = this.app;
    const maps = mapsOf(use, sight, this.gradient, state, this.own.changes);
    const large = element("div", { class: "large" });
    const heading = [element("h3", {}, title), element("p", { class: "quiet" }, `${term}: rows read, columns are read`)];
    if (!maps.length) return element("div", { class: "use" }, ...heading, element("p", {}, "computing …"));
    const isCross = USES[use].use === "cross_attention";
    const scales = scalesOf(maps, state.measure === "norms", isCross && state.measure === "gradient");
    const show = () => {
      const head = this.chosenMap(use);
      if (head) large.replaceChildren(...this.headActions(use, head), ...drawLargeMap(head, scales, term, (row, key) => this.open(use, head, row, key)));
    };
    const small = drawSmallMaps(maps, scales, this.own.heads[use], (choice) => {
      this.own.heads[use] = choice;
      this.app.changed();
      show();
    });
    show();
    return element("div", { class: "use" }, ...heading, maps.flat().length > 1 ? small : "", large);
  }

  /**
   * @param {number} use
   * @param {HeadMap} head
   */
  headActions(use, { choice, isCut }) {
    if (choice.head < 0) return [];
    const { stack, use: name } = USES[use], cut = nameOf({ stack, use: name, layer: choice.layer }, choice.head);
    return [action(isCut ? "Bring this head back" : "Cut this head", () => this.toggleHead(cut), { "aria-pressed": String(isCut) })];
  }

  /** @param {string} name */
  toggleHead(name) {
    const { changes } = this.own, isCut = changes.cut.includes(name);
    this.change({ ...changes, cut: isCut ? changes.cut.filter((other) => other !== name) : [...changes.cut, name] });
  }

  /** @param {Changes} changes */
  change(changes) {
    this.own.changes = changes;
    this.app.changed();
    this.ask();
    this.drawCosts();
  }

  /** What is changed, with a way back. */
  drawChanges() {
    const { changes, prefix } = this.own, back = (/** @type {Changes} */ next) => () => this.change(next);
    const unscaled = element("input", { type: "checkbox", checked: changes.unscaled });
    unscaled.addEventListener("change", () => this.change({ ...changes, unscaled: unscaled.checked }));
    const cuts = changes.cut.map((name) => action(`${headName(name)} is cut ✕`, () => this.toggleHead(name), { class: "undo" }));
    const weights = Object.entries(changes.weights).map(([name, weight]) => {
      const { [name]: _, ...others } = changes.weights;
      return action(`${headName(name)}: a weight is ${weight} ✕`, back({ ...changes, weights: others }), { class: "undo" });
    });
    const start = prefix.length ? [action(`the first ${prefix.length} tokens are given ✕`, () => this.goOnFrom([]), { class: "undo" })] : [];
    this.before.textContent = "";
    const scale = this.facts.model.score === "scaled_dot_product" ? [element("label", {}, unscaled, " scores without 1/√H")] : [];
    this.parts.changes.replaceChildren(...scale, ...cuts, ...weights, ...start, this.before);
  }

  /**
   * @param {number} use
   * @param {HeadMap} head
   * @param {number} row of the map
   * @param {number} key
   */
  open(use, { map, choice }, row, key) {
    if (choice.head < 0) return;
    const [query, other] = [map.queries[row], map.keys[key]];
    if (map.values[row][key] === null) return;
    this.own.cell = { use, layer: choice.layer, head: choice.head, row: query.to - 1 + map.offset, key: other.from };
    this.app.changed();
    this.askForCell();
  }

  /** @param {Cell | undefined} cell */
  drawCell(cell) {
    const { own: { cell: chosen, changes }, sight, facts } = this, part = this.parts.cell;
    if (!chosen || !cell || !sight) return part.replaceChildren();
    const { use, layer, head, row, key } = chosen, { stack, use: name, term } = USES[use];
    const keys = use === 1 ? sight.inputs : sight.source, queries = use === 0 ? sight.source : sight.outputs;
    const place = nameOf({ stack, use: name, layer }, head, row, key);
    const number = element("input", { type: "number", min: 0, max: 1, step: 0.05, value: cell.weights[key].toFixed(2) });
    number.addEventListener("change", () => {
      if (number.validity.valid && number.value) this.change({ ...changes, weights: { ...changes.weights, [place]: Number(number.value) } });
    });
    const close = action("Close", () => { this.own.cell = null; this.app.changed(); part.replaceChildren(); });
    const title = `One weight: ${term}, layer ${layer + 1}, head ${head + 1}, ${queries[row]} ← ${keys[key]}`;
    return part.replaceChildren(element("h3", {}, title), element("p", {}, element("label", {}, "Set the weight to ", number), " ", close),
      ...drawSteps(cell, facts.model, key, [queries[row], ...keys]));
  }

  /** What the loss of each head costs, as page.py measured it. */
  drawCosts() {
    const { costs } = this.facts, largest = costs.reduce((most, { change }) => Math.max(most, Math.abs(change)), 1e-9);
    const names = [...new Set(costs.map(({ stack, use, layer }) => nameOf({ stack, use, layer })))];
    const rows = names.map((name) => element("tr", {}, element("th", { scope: "row" }, placeName(name)),
      ...costs.filter((cost) => nameOf(cost) === name).map((cost) => {
        const head = nameOf(cost, cost.head), isCut = this.own.changes.cut.includes(head);
        const label = `${headName(head)}: ${cost.change.toFixed(2)} ± ${cost.half.toFixed(2)} BLEU without it`;
        const button = action(cost.change.toFixed(2).replace("-", "−"), () => this.toggleHead(head), { "aria-pressed": String(isCut), title: label, "aria-label": label });
        button.style.setProperty("--size", cssShare(0.5 * Math.max(0, -cost.change) / largest));
        return element("td", {}, button);
      })));
    this.parts.costs.replaceChildren(
      element("p", { class: "quiet" }, "The change of BLEU on the validation set, by greedy search, if this head alone is cut. Click to cut it here."),
      element("div", { class: "scroll" }, element("table", { class: "table" }, ...rows)));
  }
}

/** @param {string} name of a place, and what nameOf() puts after it */
function placeName(name) {
  const [stack, use, layer] = name.split("."), found = USES.find((known) => known.stack === stack && known.use === use);
  return `${found?.term}, layer ${Number(layer) + 1}`;
}

/** @param {string} name */
function headName(name) {
  return `${placeName(name)}, head ${Number(name.split(".")[3]) + 1}`;
}
