// The attention page: base.js, then maps.js, then this.

byId("uses").append(...embedded("weights").map((/** @type {Use} */ use) => element("section", {},
  element("h2", {}, use.title), ...drawUse(use))));
