"use strict";
// A reader of a page in headless Chromium: node browse.js CHROMIUM PAGE FACTS. The browser reads commands of its
// debugging protocol from descriptor 3 and writes answers to descriptor 4, so no other package is needed.

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { after, test } = require("node:test");

const [program, address, text] = process.argv.slice(2);
const facts = JSON.parse(text); // { title, axe, beam, expected: [[line, translation], …] }
[facts.line, facts.translation] = facts.expected.at(-1);
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"];
const LONGEST = 120_000; // ms that anything may take

/** @type {Record<string, number>} */
const KEYS = { Enter: 13, ArrowLeft: 37, ArrowRight: 39, ArrowDown: 40 };

class Browser {
  constructor() {
    this.process = spawn(program, FLAGS, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    [this.number, this.rest, this.session] = [0, "", {}];
    this.waiting = new Map();
    this.problems = /** @type {unknown[]} */ ([]);
    this.process.stdio[4]?.setEncoding("utf-8").on("data", (part) => {
      const messages = (this.rest + part).split("\0");
      this.rest = messages.pop() ?? "";
      messages.map((message) => JSON.parse(message)).forEach((message) => this.hear(message));
    });
  }

  /** @param {any} message */
  hear({ id, method, params, result, error }) {
    if (method === "Page.loadEventFired") this.waiting.get(method)?.();
    if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") this.problems.push(params);
    if (id) this.waiting.get(id)?.(error ? Promise.reject(new Error(error.message)) : result);
  }

  /**
   * @param {string} method
   * @param {object} [params]
   */
  send(method, params = {}) {
    const id = ++this.number;
    this.process.stdio[3]?.write(`${JSON.stringify({ id, method, params, ...this.session })}\0`);
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  async open() {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    this.session = { sessionId: (await this.send("Target.attachToTarget", { targetId, flatten: true })).sessionId };
    for (const domain of ["Runtime", "Log", "Page"]) await this.send(`${domain}.enable`);
    const loaded = new Promise((resolve) => this.waiting.set("Page.loadEventFired", resolve));
    await this.send("Page.navigate", { url: address });
    await loaded;
  }

  /**
   * The value of an expression in the page, which is awaited.
   * @param {string} expression
   */
  async run(expression) {
    const asked = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", asked);
    assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
    return result.value;
  }

  /**
   * Until an expression in the page is true.
   * @param {string} condition
   */
  wait(condition) {
    const look = `const look = () => ${condition} ? go() : setTimeout(look, 20)`;
    const stop = `setTimeout(() => fail(new Error(${JSON.stringify(condition)})), ${LONGEST})`;
    return this.run(`new Promise((go, fail) => { ${look}; ${stop}; look(); })`);
  }

  /** @param {string} line */
  async type(line) {
    await this.run(`line.value = ${JSON.stringify(line)}; line.dispatchEvent(new Event("input"))`);
    await this.wait(READY);
  }

  /**
   * @param {string} name of a choice
   * @param {string} value
   */
  choose(name, value) {
    return this.run(`${name}.value = "${value}"; ${name}.dispatchEvent(new Event("change"))`);
  }

  /** @param {string} key */
  async press(key) {
    const pressed = { key, code: key, windowsVirtualKeyCode: KEYS[key], ...(key === "Enter" ? { text: "\r" } : {}) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...pressed });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...pressed });
  }
}

const READY = `document.querySelector(".panel") && !document.querySelector("[aria-busy=true]")`;
const TRANSLATION = `document.querySelector(".translation").textContent`;
const FIRST_WORD = `document.querySelectorAll(".chips")[1].children[0].firstChild.textContent`;
const CROSS = `document.querySelectorAll(".use")[2]`;
const UNDO = `document.querySelectorAll(".undo").length`;

const page = new Browser();
const opened = page.open().then(() => page.wait(READY));
after(() => page.process.kill());

/**
 * @param {string} name
 * @param {() => Promise<void>} check
 */
function checkThat(name, check) {
  test(name, { timeout: 3 * LONGEST }, async () => {
    await opened;
    await check();
    assert.deepEqual(page.problems, []);
  });
}

checkThat("names are text", async () => {
  assert.equal(await page.run("document.title"), facts.title);
  assert.equal(await page.run(`document.querySelector("h1").textContent`), facts.title);
});

checkThat("a typed sentence has the translation of the search", async () => {
  await page.type(facts.line);
  assert.equal(await page.run(TRANSLATION), facts.translation);
  await page.type("");
  assert.deepEqual(await page.run(`[${TRANSLATION}, document.querySelectorAll(".uses canvas").length]`), ["", 0]);
});

checkThat("sentences have their translations, and the first words come soon", async () => {
  const waited = [];
  for (const [line, translation] of facts.expected) {
    await page.type(line);
    assert.equal(await page.run(TRANSLATION), translation, line);
    waited.push(Number((await page.run(`document.querySelector(".note").textContent`)).match(/ (\d+) ms$/)[1]));
  }
  waited.sort((a, b) => a - b);
  console.log(`first word: median ${waited[waited.length >> 1]} ms, worst ${waited.at(-1)} ms of ${waited.length}`);
});

checkThat("a link restores a head that is cut and an alternative that is taken", async () => {
  await page.type(facts.line);
  await page.run(`document.querySelectorAll(".costs button")[1].click()`);
  await page.wait(
    `document.querySelector(".undo")?.textContent.includes("encoder-decoder attention, layer 1, head 2")`,
  );
  await page.wait(READY);
  const told = await page.run(`document.querySelector(".before").textContent`);
  assert.ok(told.includes(facts.translation) || told === "the translation stays as it was", told);
  await page.run(`document.querySelectorAll(".chips")[1].children[0].click()`);
  const [other] = (await page.run(`document.querySelectorAll(".alternatives button")[1].textContent`)).split(" ");
  await page.run(`document.querySelectorAll(".alternatives button")[1].click()`);
  await page.wait(READY);
  assert.equal(await page.run(FIRST_WORD), other);
  const [hash, translation] = await page.run(`[location.hash, ${TRANSLATION}]`);
  await page.run(`location.hash = "#s=Ana"`);
  await page.wait(`${READY} && ${UNDO} === 0`);
  await page.run(`location.hash = ${JSON.stringify(hash)}`);
  await page.wait(`${READY} && ${UNDO} === 2`);
  assert.deepEqual(await page.run(`[location.hash, ${TRANSLATION}, ${FIRST_WORD}]`), [hash, translation, other]);
});

checkThat("what a link has wrong is left out", async () => {
  const wrong = "b=99&u=x&cut0=a.b.1.2&heads0=9.9+-5.1&prefix0=9999+1&weight0=x:2&cell0=7+7+7&choice0=x";
  await page.run(`location.hash = "#s=Tom&${wrong}"`);
  await page.wait(`line.value === "Tom" && ${READY} && ${UNDO} === 0`);
  assert.deepEqual(await page.run("[beam.value, units.value]"), [facts.beam, "pieces"]);
});

checkThat("the keyboard reaches a cell and its numbers", async () => {
  await page.type(facts.line);
  await page.run(`${CROSS}.querySelector(".small button").click()`);
  await page.run(`${CROSS}.querySelector('.map td[tabindex="0"]').focus()`);
  for (const key of ["ArrowRight", "ArrowDown", "Enter"]) await page.press(key);
  await page.wait(`document.querySelector(".cell h3")`);
  const title = await page.run(`document.querySelector(".cell h3").textContent`);
  const key = await page.run(`document.querySelector(".chips").children[1].textContent`);
  assert.ok(title.startsWith("One weight: encoder-decoder attention, layer 1, head 1, ") && title.endsWith(key), title);
  const [, weight] = (await page.run(`${CROSS}.querySelector("output").textContent`)).split(": ");
  assert.ok((await page.run(`document.querySelector(".cell").textContent`)).includes(weight), weight);
});

checkThat("the keyboard climbs the tree and goes on from a node", async () => {
  await page.type(facts.line);
  await page.run(`document.querySelectorAll("details").forEach((each) => (each.open = true))`);
  await page.run(`document.querySelector('.tree [tabindex="0"]').focus()`);
  const focused = `document.activeElement.firstChild.data`;
  const [root, ...rest] = await page.run(`[...document.querySelectorAll(".tree text.best")].map((each) => each.firstChild.data)`);
  for (const key of ["ArrowRight", "ArrowLeft"]) await page.press(key);
  assert.equal(await page.run(focused), root);
  await page.press("ArrowRight"); // to the most likely token, which the best translation need not begin with
  for (let down = 0; down < 9 && (await page.run(focused)) !== rest[0]; down++) await page.press("ArrowDown");
  assert.equal(await page.run(focused), rest[0]);
  await page.press("Enter");
  await page.wait(`${READY} && document.querySelectorAll(".undo").length === 1`);
  assert.equal(await page.run("document.activeElement.closest('svg')?.classList.value"), "tree");
});

checkThat("pointing at a word colours what is read for it", async () => {
  await page.type(facts.line);
  const colours = `[...document.querySelectorAll(".chips")[0].children].map((chip) => parseFloat(chip.style.getPropertyValue("--read")))`;
  const box = `(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document.querySelectorAll(".chips")[1].children[0].getBoundingClientRect())`;
  await page.run(`document.querySelectorAll(".chips")[1].scrollIntoView({ block: "center" })`);
  const [x, y] = await page.run(box);
  await page.send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
  assert.ok((await page.run(colours)).some((share) => share > 0));
  await page.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: 1, y: 1 });
  assert.ok((await page.run(colours)).every((share) => share === 0));
});

checkThat("measures, words and the theme redraw the maps", async () => {
  await page.type(facts.line);
  const pixels = `${CROSS}.querySelector("canvas").toDataURL()`;
  for (const [name, value] of [
    ["measure", "norms"],
    ["measure", "shifted"],
    ["units", "words"],
  ]) {
    const drawn = await page.run(pixels);
    await page.choose(name, value);
    assert.notEqual(await page.run(pixels), drawn, value);
  }
  const drawn = await page.run(pixels);
  await page.run("theme.click()");
  assert.notEqual(await page.run(pixels), drawn);
  await page.choose("measure", "gradient");
  await page.wait(`${CROSS}.querySelector("output")?.textContent.includes("the whole model")`);
});

for (const width of [400, 1280]) {
  checkThat(`nothing is cut, and axe-core finds nothing, at ${width} pixels`, async () => {
    const size = { width, height: 800, deviceScaleFactor: 1, mobile: false };
    await page.send("Emulation.setDeviceMetricsOverride", size);
    await page.type(facts.line);
    await page.run(`document.querySelectorAll("details").forEach((each) => (each.open = true))`);
    await page.run(`document.querySelectorAll(".chips")[1].children[0].click()`);
    assert.ok((await page.run("document.documentElement.scrollWidth")) <= width);
    await page.run(readFileSync(facts.axe, "utf-8"));
    for (const _ of ["one theme", "the other"]) {
      const { passes, violations } = await page.run("axe.run()");
      const found = violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)].join(" "));
      assert.ok(passes.length > 20);
      assert.deepEqual(found, []);
      await page.run("theme.click()");
    }
  });
}
