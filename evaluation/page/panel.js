"use strict";
// One run: its worker, its translation, and what there is to see and to change.

/** @typedef {{ state: State, changed: () => void, languages: () => { source: string, target: string } }} App */

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
    const scrolling = (/** @type {string} */ name, /** @type {string} */ label) =>
      element("div", { class: `scroll ${name}`, tabindex: 0, role: "group", "aria-label": label });
    this.text = element("p", { class: "translation", "aria-live": "polite" });
    this.note = element("p", { class: "quiet note" });
    this.before = element("p", { class: "quiet before" });
    this.parts = {
      changes: part("changes"),
      words: part("words"),
      alternatives: part("alternatives"),
      best: scrolling("best", "the translations"),
      tree: scrolling("high", "the tree of the search"),
      uses: part("uses"),
      cell: part("cell"),
      costs: scrolling("costs", "BLEU without each head"),
    };
    this.root = this.arrange();
    drawCosts(this);
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
    return element(
      "section",
      { class: "panel", "aria-label": title },
      element("h2", {}, this.app.state.panels.length > 1 ? title : "Translation"),
      this.text,
      this.note,
      changes,
      words,
      alternatives,
      more,
      uses,
      cell,
      this.facts.costs.length ? heads : "",
    );
  }

  get own() {
    return this.app.state.panels[this.number];
  }

  /** Ask for the translation of what is typed. */
  ask() {
    const { line, beam } = this.app.state,
      { prefix, changes, chosen } = this.own;
    const { source, target } = this.app.languages();
    const direction = this.facts.directions.findIndex((each) => each.source === source && each.target === target);
    this.gradient = undefined;
    this.asked = performance.now();
    this.isWaiting = this.id > 0; // the first question waits until the model is read
    const question = { line, direction, beam, prefix, changes, chosen, isChanged: isChanged(changes) };
    this.worker.postMessage({ id: ++this.id, kind: "translate", question });
    this.setBusy(true);
    drawChanges(this);
  }

  /** Ask about one of the translations. */
  askToLook() {
    const { tokens } = this.translations[this.own.chosen];
    this.gradient = undefined;
    this.setBusy(true);
    this.worker.postMessage({
      id: ++this.id,
      kind: "look",
      source: this.source,
      target: tokens,
      changes: this.own.changes,
    });
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
        drawCell(this, answer.cell);
        break;
      case "before":
        this.before.textContent =
          answer.text === this.text.textContent
            ? "the translation stays as it was"
            : `without the changes: ${answer.text}`;
        this.setBusy(false);
        break;
      case "failed":
        this.translations = [];
        this.drawTranslations();
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
    const { chosen } = this.own,
      [found] = this.translations.slice(chosen),
      { best, tree } = this.parts;
    this.text.textContent = found?.text ?? "";
    if (!found) {
      for (const part of [best, tree]) part.replaceChildren();
      this.note.textContent = "";
      this.showNothing();
      return;
    }
    best.replaceChildren(drawBest(this));
    const hadFocus = tree.contains(document.activeElement);
    tree.replaceChildren(drawTree(this.tree, this.translations, (tokens) => this.goOnFrom(tokens)));
    if (hadFocus) tree.querySelector("text")?.focus();
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

  /** What there is to see of a sentence goes. */
  showNothing() {
    this.sight = undefined;
    const { words, alternatives, uses, cell } = this.parts;
    for (const part of [words, alternatives, uses, cell]) part.replaceChildren();
  }

  draw() {
    if (!this.sight) {
      this.showNothing();
      this.parts.words.append("This sentence is too long to draw what is read for it.");
      return;
    }
    const { measure } = this.app.state;
    drawWords(this);
    this.drawUses();
    if (measure === "gradient") this.askForGradient();
    if (this.own.cell) this.askForCell();
    else this.parts.cell.replaceChildren();
  }

  askForGradient() {
    if (this.gradient || !this.sight || this.derived === this.id) return;
    this.derived = this.id;
    const { tokens } = this.translations[this.own.chosen];
    this.worker.postMessage({
      id: this.id,
      kind: "gradient",
      source: this.source,
      target: tokens,
      changes: this.own.changes,
    });
  }

  askForCell() {
    const { cell } = this.own;
    if (!cell) return;
    const { use, layer, head, row, key } = cell,
      { stack, use: name } = USES[use];
    this.worker.postMessage({ id: this.id, kind: "cell", place: { stack, use: name, layer }, head, row, key });
  }

  /**
   * The map that is chosen of a use.
   * @param {number} use
   * @returns {HeadMap | undefined}
   */
  chosenMap(use) {
    if (!this.sight) return undefined;
    const maps = mapsOf(use, this.sight, this.gradient, this.app.state, this.own.changes),
      chosen = this.own.heads[use];
    return (
      maps.flat().find(({ choice }) => choice.layer === chosen.layer && choice.head === chosen.head) ?? maps[0]?.[0]
    );
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
    const { title, term } = USES[use],
      { state } = this.app;
    const maps = mapsOf(use, sight, this.gradient, state, this.own.changes);
    const large = element("div", { class: "large" });
    const heading = [
      element("h3", {}, title),
      element("p", { class: "quiet" }, `${term}: rows read, columns are read`),
    ];
    if (!maps.length) return element("div", { class: "use" }, ...heading, element("p", {}, "computing …"));
    const isCross = USES[use].use === "cross_attention";
    const scales = scalesOf(maps, state.measure === "norms", isCross && state.measure === "gradient");
    const show = () => {
      const head = this.chosenMap(use);
      if (head)
        large.replaceChildren(
          ...this.headActions(use, head),
          ...drawLargeMap(head, scales, term, (row, key) => this.open(use, head, row, key)),
        );
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
    const { stack, use: name } = USES[use],
      cut = nameOf({ stack, use: name, layer: choice.layer }, choice.head);
    return [
      action(isCut ? "Bring this head back" : "Cut this head", () => this.toggleHead(cut), {
        "aria-pressed": String(isCut),
      }),
    ];
  }

  /** @param {string} name */
  toggleHead(name) {
    const { changes } = this.own,
      isCut = changes.cut.includes(name);
    this.change({ ...changes, cut: isCut ? changes.cut.filter((other) => other !== name) : [...changes.cut, name] });
  }

  /** @param {Changes} changes */
  change(changes) {
    this.own.changes = changes;
    this.app.changed();
    this.ask();
    drawCosts(this);
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
}
