"use strict";
// Both sentences, word by word or piece by piece, and other words in their places.

/**
 * Both sentences as chips: who points at one sees what it reads.
 * @param {Panel} panel
 */
function drawWords(panel) {
  const { sight } = panel,
    { units } = panel.app.state,
    { words, alternatives } = panel.parts;
  if (!sight) return;
  alternatives.replaceChildren();
  const sources = spansOf(sight.source, units),
    targets = spansOf(sight.outputs, units);
  const read = sources.map(({ text }) => element("button", { type: "button", class: "chip" }, text));
  const written = targets.map((span) => {
    const share = sight.shares.slice(span.from, span.to).reduce((sum, each) => sum + each, 0) / (span.to - span.from);
    const probability = probabilityOf(span, sight.chosen);
    const label = `${span.text}: probability ${percent(probability)}, ${percent(share)} of it from the source`;
    const chip = element(
      "button",
      { type: "button", class: "chip", title: label, "aria-expanded": "false" },
      span.text,
      element("small", {}, percent(probability)),
      element("small", { class: "share" }, `${percent(share)} from the source`),
    );
    chip.style.setProperty("--share", cssShare(share));
    chip.addEventListener("click", () => offer(panel, span, chip, written));
    return chip;
  });
  const point = (/** @type {number} */ use, /** @type {number} */ row, /** @type {HTMLElement[]} */ chips) => {
    const values = panel.chosenMap(use)?.map.values[row] ?? [];
    const largest = values.reduce((/** @type {number} */ most, value) => Math.max(most, Math.abs(value ?? 0)), 1e-9);
    chips.forEach((chip, key) =>
      chip.style.setProperty("--read", cssShare((0.45 * Math.abs(values[key] ?? 0)) / largest)),
    );
  };
  const both = [...read, ...written];
  const leave = () => both.forEach((chip) => chip.style.setProperty("--read", "0%"));
  const listen = (/** @type {HTMLElement} */ chip, /** @type {() => void} */ enter) => {
    for (const kind of ["pointerenter", "focus"])
      chip.addEventListener(kind, () => {
        leave();
        enter();
      });
    for (const kind of ["pointerleave", "blur"]) chip.addEventListener(kind, leave);
  };
  read.forEach((chip, row) => listen(chip, () => point(0, row, read)));
  written.forEach((chip, row) =>
    listen(chip, () => {
      point(2, row, read);
      point(1, row, [element("i"), ...written.slice(0, -1)]);
    }),
  );
  walk([read, written]);
  words.replaceChildren(
    element(
      "p",
      { class: "quiet" },
      "Point at a word to see what the chosen heads read for it. Under each word of the translation: its probability, and the share of the source in it. Click on one for other words.",
    ),
    element("div", { class: "chips" }, ...read),
    element("div", { class: "chips" }, ...written),
  );
}

/**
 * Other tokens in the place of the first of a word's.
 * @param {Panel} panel
 * @param {Span} span
 * @param {HTMLElement} chip
 * @param {HTMLElement[]} chips
 */
function offer(panel, { from }, chip, chips) {
  const { tokens } = panel.translations[panel.own.chosen],
    isOpen = chip.getAttribute("aria-expanded") === "true";
  chips.forEach((other) => other.setAttribute("aria-expanded", "false"));
  if (isOpen || !panel.sight) return panel.parts.alternatives.replaceChildren();
  chip.setAttribute("aria-expanded", "true");
  const choices = panel.sight.alternatives[from].map(({ token, piece, probability }) =>
    action(
      `${piece} ${percent(probability)}`,
      () => panel.goOnFrom([...tokens.slice(0, from), token]),
      token === tokens[from] ? { "aria-pressed": "true" } : {},
    ),
  );
  panel.parts.alternatives.replaceChildren(
    element("p", { class: "quiet" }, `Instead of ${panel.sight.outputs[from]}, and on from there:`),
    ...choices,
  );
}
