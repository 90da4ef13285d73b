"use strict";
// What the page and its worker both know.

/** @typedef {{ stack: "encoder" | "decoder", use: "self_attention" | "cross_attention", layer: number }} Place */
/**
 * @typedef {object} Changes What a reader changes about the model.
 * @property {string[]} cut heads, by nameOf a place and a head
 * @property {boolean} unscaled whether scores are not divided by √H
 * @property {Record<string, number>} weights by nameOf a place, a head, a query and a key
 */

const PAD = 0,
  BOS = 2,
  EOS = 3;

/** @type {Changes} */
const UNCHANGED = { cut: [], unscaled: false, weights: {} };

/**
 * @param {Place} place
 * @param {...number} numbers a head, or more
 */
function nameOf({ stack, use, layer }, ...numbers) {
  return [stack, use, layer, ...numbers].join(".");
}
