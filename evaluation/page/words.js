"use strict";
// Pieces and words: words are the pieces from one space to the next.

/** @typedef {{ text: string, from: number, to: number }} Span Pieces from the first to before the second. */

/**
 * @param {string[]} pieces
 * @param {Units} units
 * @returns {Span[]}
 */
function spansOf(pieces, units) {
  if (units === "pieces") return pieces.map((text, at) => ({ text, from: at, to: at + 1 }));
  /** @type {Span[]} */
  const words = [];
  pieces.forEach((piece, at) => {
    const isStart = piece.startsWith("␣") || /^<.*>$/u.test(piece) || !words.length;
    if (isStart || /^<.*>$/u.test(pieces[at - 1])) words.push({ text: "", from: at, to: at });
    const word = words[words.length - 1];
    word.text += piece.replaceAll("␣", "");
    word.to = at + 1;
  });
  return words;
}

/**
 * A map of words: what the keys of a word get together, in the mean of a query word's pieces; null where nothing of a
 * key can be seen.
 * @param {number[][]} values of query and key; queries may see a part of the keys
 * @param {Span[]} queries
 * @param {Span[]} keys
 * @returns {(number | null)[][]}
 */
function byWords(values, queries, keys) {
  return queries.map((query) =>
    keys.map((key) => {
      const rows = values.slice(query.from, query.to).map((row) => row.slice(key.from, key.to));
      if (rows.every((row) => row.length === 0)) return null;
      return rows.reduce((sum, row) => sum + row.reduce((total, value) => total + value, 0), 0) / rows.length;
    }),
  );
}

/**
 * The probability of a word: that of all its pieces.
 * @param {Span} span
 * @param {Choice[]} chosen
 */
function probabilityOf({ from, to }, chosen) {
  return chosen.slice(from, to).reduce((all, { probability }) => all * probability, 1);
}
