"use strict";
// Small parts that several others need.

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
  if (share < 0.0005) return "< 0.1 %";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/**
 * A share as style sheets write it.
 * @param {number} share
 */
function cssShare(share) {
  return `${(100 * share).toFixed(1)}%`;
}
