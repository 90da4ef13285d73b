"use strict";
// A line as the model reads it, and its pieces: data/pairs.py, data/invisible.py, data/capitals.py, and SentencePiece.

/**
 * @typedef {object} Reading Regular expressions of data/invisible.py, and a number of data/capitals.py.
 * @property {string} without_meaning
 * @property {string} shaping_nothing
 * @property {string} blank
 * @property {number} fewest_capitals
 */
/**
 * @typedef {object} Vocabulary
 * @property {"unigram" | "bpe"} type
 * @property {string[]} pieces by id
 * @property {number[]} scores
 * @property {number[]} is_byte ids of pieces that spell one byte, in its order
 * @property {number[]} is_symbol ids of pieces that spell nothing
 * @property {string} meta_stand_in
 */

const META = "\u2581";
const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+/u; // Python's isspace
const UNKNOWN_PENALTY = 10;

/**
 * Normalised, not in capitals, without invisible characters that say nothing.
 * @param {string} line
 * @param {Reading} reading
 */
function read(line, reading) {
  const text = line.replace(/\p{Surrogate}/gu, "\ufffd").replace(new RegExp(reading.without_meaning, "gu"), "");
  return inSentenceCase(normalise(text.replace(new RegExp(reading.shaping_nothing, "gu"), ""), reading), reading);
}

/**
 * Unicode NFC, with every run of white space collapsed to one space and the ends stripped.
 * @param {string} text
 * @param {Reading} reading
 */
function normalise(text, reading) {
  const joined = text.split(SPACES).filter(Boolean).join(" ");
  return new RegExp(reading.blank, "u").test(joined) ? "" : joined.normalize("NFC");
}

/**
 * A text in capitals keeps the first of each sentence, and the word I.
 * @param {string} text
 * @param {Reading} reading
 */
function inSentenceCase(text, reading) {
  const capitals = text.match(/\p{Uppercase}/gu) ?? [];
  if (/[\p{Lowercase}\p{Lt}]/u.test(text) || capitals.length < reading.fewest_capitals) return text;
  return text
    .split(/(?<=[.!?…]) /u)
    .map(capitalised)
    .join(" ");
}

/** @param {string} sentence */
function capitalised(sentence) {
  const letters = [...sentence],
    first = Math.max(
      0,
      letters.findIndex((letter) => /\p{Uppercase}/u.test(letter)),
    );
  const rest = letters
    .slice(first + 1)
    .join("")
    .toLowerCase();
  return letters.slice(0, first + 1).join("") + rest.replace(/(?<![\p{L}\p{N}_])i(?![\p{L}\p{N}_])/gu, "I");
}

/** Sentences ↔ ids of pieces, as SentencePiece has them for normalised text (Kudo and Richardson 2018). */
class Tokenizer {
  /** @param {Vocabulary} vocabulary */
  constructor(vocabulary) {
    this.vocabulary = vocabulary;
    const isNoText = new Set([...vocabulary.is_byte, ...vocabulary.is_symbol]);
    /** @type {Map<string, number>} */
    this.ids = new Map();
    vocabulary.pieces.forEach((piece, id) => {
      if (!isNoText.has(id)) this.ids.set(piece, id);
    });
    const texts = [...this.ids];
    this.longest = texts.reduce((longest, [piece]) => Math.max(longest, [...piece].length), 1);
    const least = texts.reduce((least, [, id]) => Math.min(least, vocabulary.scores[id]), 0);
    this.unknownScore = Math.fround(least - UNKNOWN_PENALTY);
    this.byteOf = new Map(vocabulary.is_byte.map((id, byte) => [id, byte]));
  }

  /**
   * @param {string} text normalised
   * @returns {number[]}
   */
  encode(text) {
    if (!text) return [];
    const letters = [...(META + text.replaceAll(META, this.vocabulary.meta_stand_in).replaceAll(" ", META))];
    const spelled = this.vocabulary.type === "bpe" ? this.merge(letters) : this.likeliest(letters);
    return spelled.flatMap((piece) => this.ids.get(piece) ?? this.spell(piece));
  }

  /**
   * The bytes of a character that has no piece.
   * @param {string} letter
   */
  spell(letter) {
    return [...new TextEncoder().encode(letter)].map((byte) => this.vocabulary.is_byte[byte]);
  }

  /**
   * Unigram: the segmentation of the highest probability, by Viterbi's algorithm (Kudo 2018). SentencePiece keeps the
   * score of a best path in float32, but compares those through known pieces in float64.
   * @param {string[]} letters
   */
  likeliest(letters) {
    const scores = new Float32Array(letters.length + 1).fill(-Infinity),
      starts = new Int32Array(letters.length + 1);
    scores[0] = 0;
    for (let start = 0; start < letters.length; start++) {
      let piece = "";
      for (let end = start + 1; end <= Math.min(letters.length, start + this.longest); end++) {
        piece += letters[end - 1];
        const id = this.ids.get(piece),
          isLetter = end === start + 1;
        if (id === undefined && !isLetter) continue;
        const score =
          id === undefined
            ? Math.fround(scores[start] + this.unknownScore)
            : scores[start] + this.vocabulary.scores[id];
        if (score > scores[end]) [scores[end], starts[end]] = [score, start];
      }
    }
    const pieces = [];
    for (let end = letters.length; end > 0; end = starts[end]) pieces.unshift(letters.slice(starts[end], end).join(""));
    return pieces;
  }

  /**
   * Byte-pair encoding: the neighbours whose piece was learnt first are joined, the leftmost of them first, until none
   * is left (Sennrich et al. 2016).
   * @param {string[]} letters
   */
  merge(letters) {
    const pieces = [...letters];
    for (;;) {
      let [best, place] = [-Infinity, -1];
      for (let left = 0; left + 1 < pieces.length; left++) {
        const id = this.ids.get(pieces[left] + pieces[left + 1]);
        if (id !== undefined && this.vocabulary.scores[id] > best) [best, place] = [this.vocabulary.scores[id], left];
      }
      if (place < 0) return pieces;
      pieces.splice(place, 2, pieces[place] + pieces[place + 1]);
    }
  }

  /**
   * The text of ids; symbols are left out.
   * @param {number[]} ids
   * @param {Reading} reading
   */
  decode(ids, reading) {
    const isSymbol = new Set(this.vocabulary.is_symbol);
    let text = "",
      bytes = /** @type {number[]} */ ([]);
    for (const id of [...ids, -1]) {
      const byte = this.byteOf.get(id);
      if (byte !== undefined) bytes.push(byte);
      else {
        text += decodeBytes(bytes);
        bytes = [];
        if (id >= 0 && !isSymbol.has(id)) text += this.vocabulary.pieces[id].replaceAll(META, " ");
      }
    }
    return normalise(text.replaceAll(this.vocabulary.meta_stand_in, META), reading);
  }

  /**
   * The readable spelling of an id: ␣ is a space.
   * @param {number} id
   */
  piece(id) {
    return this.vocabulary.pieces[id].replaceAll(META, "␣");
  }
}

/**
 * UTF-8, with U+FFFD for every byte that is part of no character.
 * @param {number[]} bytes
 */
function decodeBytes(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length;) {
    const lengths = [1, 2, 3, 4].filter((length) => start + length <= bytes.length);
    const letters = lengths.map((length) => decodeCharacter(bytes.slice(start, start + length)));
    const found = letters.findIndex((letter) => letter !== null);
    text += found < 0 ? "\ufffd" : letters[found];
    start += Math.max(1, found + 1);
  }
  return text;
}

/** @param {number[]} bytes */
function decodeCharacter(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return null;
  }
}
