"use strict";
// The worker of a page without a browser: questions as lines of JSON on standard input, answers on standard output.
// The test puts the worker's code before this, and "globalThis.self = globalThis" before that.

const { readFileSync, writeSync } = require("node:fs");

/** @param {Generator<unknown, any>} work */
function toTheEnd(work) {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** @type {Record<string, (question: any) => any>} */
const ANSWERS = {
  read: ({ line }) => read(line, bench.facts.reading),
  encode: ({ text }) => bench.tokenizer.encode(text),
  decode: ({ ids }) => bench.textOf(ids),
  logProbs: ({ source, target, changes }) => {
    const { logProbs } = look(bench.model(changes), source, target);
    return target.map((/** @type {number} */ token, /** @type {number} */ row) => rowOf(logProbs, row)[token]);
  },
  search: ({ source, ...question }) =>
    toTheEnd(bench.search(source, question)).best.map((/** @type {Hypothesis} */ found) => bench.describe(found)),
  look: ({ source, target, changes }) => bench.look(source, target, changes ?? UNCHANGED),
  cell: ({ place, head, row, key }) => bench.cell(place, head, row, key),
  remainder: ({ source, target }) => {
    const model = bench.model();
    const left = [...look(model, source, target).watch].flatMap(([name, attended]) => {
      const [stack, use, layer] = name.split("."),
        place = placeOf(/** @type {any} */ (stack), /** @type {any} */ (use), Number(layer)),
        { bias } = projectionsAt(model, place).output;
      return addedVectors(model, place, attended).flatMap((keys, row) => {
        const added = total(keys.map(total));
        return [...added.map((x, i) => Math.abs(attended.before[row][i] + x + bias[i] - attended.after[row][i]))];
      });
    });
    return Math.max(...left);
  },
  gradient: ({ source, target }) => toTheEnd(gradientTimesInput(bench.model(), source, target)),
};

const [facts, content, ...questions] = readFileSync(0, "utf-8").trimEnd().split("\n");
bench = new Bench(JSON.parse(facts), bytesOf(content));
for (const line of questions) {
  const { ask, ...question } = JSON.parse(line);
  writeSync(1, `${JSON.stringify(ANSWERS[ask](question) ?? null)}\n`);
}
process.exit();
