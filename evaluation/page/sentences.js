"use strict";
// Both sentences, word by word or piece by piece, and other words in their places.

const HELP =
  "Point at a word to see what the chosen heads read for it. Under each word of the translation: its probability, " +
  "and the share of the source in it. Click on one for other words.";

/**
 * Both sentences as chips: who points at one sees what it reads.
 * @param {Panel} panel
 */
function drawWords(panel) {
  const { sight } = panel,
    { units } = panel.app.state;
  if (!sight) return;
  const read = spansOf(sight.source, units).map(({ text }) =>
    element("button", { type: "button", class: "chip" }, text),
  );
  const written = spansOf(sight.outputs, units).map((span) => drawWritten(span, sight));
  spansOf(sight.outputs, units).forEach((span, row) => {
    written[row].addEventListener("click", () => offer(panel, span, written[row], written));
  });
  const inputs = [element("i"), ...written.slice(0, -1)]; // the first that the decoder reads is no word
  const leave = () => [...read, ...written].forEach((chip) => chip.style.setProperty("--read", "0%"));
  read.forEach((chip, row) => whenPointedAt(chip, () => tint(panel, 0, row, read), leave));
  written.forEach((chip, row) => {
    whenPointedAt(chip, () => [tint(panel, 2, row, read), tint(panel, 1, row, inputs)], leave);
  });
  walk([read, written]);
  panel.parts.alternatives.replaceChildren();
  panel.parts.words.replaceChildren(
    element("p", { class: "quiet" }, HELP),
    element("div", { class: "chips" }, ...read),
    element("div", { class: "chips" }, ...written),
  );
}

/**
 * A word of the translation, with its probability and the share of the source.
 * @param {Span} span
 * @param {Sight} sight
 */
function drawWritten(span, { shares, chosen }) {
  const share = shares.slice(span.from, span.to).reduce((sum, each) => sum + each, 0) / (span.to - span.from);
  const probability = percent(probabilityOf(span, chosen));
  const title = `${span.text}: probability ${probability}, ${percent(share)} of it from the source`;
  const chip = element(
    "button",
    { type: "button", class: "chip", title, "aria-expanded": "false" },
    span.text,
    element("small", {}, probability),
    element("small", { class: "share" }, `${percent(share)} from the source`),
  );
  chip.style.setProperty("--share", cssShare(share));
  return chip;
}

/**
 * Tint each key by what the chosen head of a use reads of it.
 * @param {Panel} panel
 * @param {number} use
 * @param {number} row
 * @param {HTMLElement[]} keys
 */
function tint(panel, use, row, keys) {
  const values = (panel.chosenMap(use)?.map.values[row] ?? []).map((value) => Math.abs(value ?? 0));
  const largest = Math.max(1e-9, ...values);
  keys.forEach((chip, key) => chip.style.setProperty("--read", cssShare((0.45 * (values[key] ?? 0)) / largest)));
}

/**
 * @param {HTMLElement} chip
 * @param {() => void} enter
 * @param {() => void} leave
 */
function whenPointedAt(chip, enter, leave) {
  const arrive = () => {
    leave();
    enter();
  };
  for (const kind of ["pointerenter", "focus"]) chip.addEventListener(kind, arrive);
  for (const kind of ["pointerleave", "blur"]) chip.addEventListener(kind, leave);
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
