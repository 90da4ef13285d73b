"use strict";
// From the bytes of pack.py to parameters by their names: parameters.encoder[0].self_attention.query.kernel.

/** @typedef {{ name: string, shape: number[], bits: number, start: number }} PackedPlace */

/**
 * @param {PackedPlace[]} places
 * @param {ArrayBuffer} content
 * @returns {any}
 */
function unpackParameters(places, content) {
  const parameters = {};
  for (const place of places) put(parameters, place.name.split("."), unpackArray(place, content));
  return parameters;
}

/**
 * @param {any} tree
 * @param {string[]} path
 * @param {Float32Array} array
 */
function put(tree, [name, ...rest], array) {
  if (rest.length) put((tree[name] ??= {}), rest, array);
  else tree[name] = array;
}

/**
 * @param {PackedPlace} place
 * @param {ArrayBuffer} content
 */
function unpackArray({ shape, bits, start }, content) {
  const length = shape.reduce((size, axis) => size * axis, 1),
    width = shape[shape.length - 1];
  if (bits === 32) return new Float32Array(content, start, length);
  const scales = new Float32Array(content, start, length / width);
  const numbers = new (bits === 8 ? Int8Array : Int16Array)(content, start + scales.byteLength, length);
  const array = new Float32Array(length);
  for (let i = 0; i < length; i++) array[i] = numbers[i] * scales[Math.floor(i / width)];
  return array;
}

/**
 * @param {string} text in Base64
 * @returns {ArrayBuffer}
 */
function bytesOf(text) {
  const letters = atob(text),
    bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes.buffer;
}
