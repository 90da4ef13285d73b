// The sentences of a test set, with what differs from their references marked; base.js and charts.js come before.

/**
 * Source, references, the translation of each run, and the chrF of each.
 * @typedef {[string, string[], string[], number[]]} Row
 */
/** @typedef {[string, (one: Row, other: Row) => number]} Order */
/**
 * A run that has translated the set, and its place among all runs, which have their colours by it.
 * @typedef {{ name: string, run: number }} ScoredRun
 */

const SHOWN = 20;  // sentences at a time

/** @param {string} text */
function words(text) {
  return text.split(/\s+/).filter(Boolean);
}

/**
 * The places of a longest common subsequence of two lists of words, in both of them.
 * @param {string[]} one
 * @param {string[]} other
 * @returns {[Set<number>, Set<number>]}
 */
function common(one, other) {
  const best = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      best[i][j] = one[i] === other[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  /** @type {[Set<number>, Set<number>]} */
  const found = [new Set(), new Set()];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) { found[0].add(i++); found[1].add(j++); }
    else if (best[i + 1][j] >= best[i][j + 1]) i++; else j++;
  }
  return found;
}

/**
 * Text whose words are marked unless their place is known.
 * @param {string[]} list
 * @param {Set<number>} known
 * @param {"mark" | "u"} how
 * @returns {Child[]}
 */
function marked(list, known, how) {
  return list.flatMap((word, place) => [place ? " " : "", known.has(place) ? word : element(how, {}, word)]);
}

/**
 * A sentence: in translations, words are marked that the nearest reference lacks, and in references, words that no
 * translation nearest to them has. Runs with the same translation stand together.
 * @param {Row} row
 * @param {ScoredRun[]} scored
 */
function drawSentence([source, references, translations, chrf], scored) {
  const split = references.map(words), found = references.map(() => /** @type {Set<number>} */ (new Set()));
  const groups = [...new Set(translations)].map((text) => {
    const own = words(text), matches = split.map((reference) => common(own, reference));
    const nearest = matches.reduce((best, [, in_reference], place) =>
      (in_reference.size / (split[place].length + own.length) > matches[best][1].size / (split[best].length + own.length) ? place : best), 0);
    matches[nearest][1].forEach((place) => found[nearest].add(place));
    const places = [...translations.keys()].filter((place) => translations[place] === text);
    const who = places.length === scored.length ? [scored.length > 1 ? "all" : "translation"] : places.flatMap((place, i) =>
      [i ? ", " : "", element("span", { class: runClass(scored[place].run) }, scored[place].name)]);
    return [element("dt", {}, ...who, element("span", { class: "chrf" }, ` ${chrf[places[0]].toFixed(0)}`)),
      element("dd", { lang: "" }, ...marked(own, matches[nearest][0], "mark"))];
  });
  const held = split.flatMap((reference, place) =>
    [element("dt", {}, "reference"), element("dd", {}, ...marked(reference, found[place].size ? found[place] : new Set(reference.keys()), "u"))]);
  return element("dl", { class: "sentence" },
    element("dt", {}, "source"), element("dd", { class: "source" }, source), ...held, ...groups.flat());
}

/**
 * @param {ScoredRun[]} scored
 * @returns {Order[]}
 */
function orders(scored) {
  const first = (/** @type {Row} */ row) => row[3][0], size = (/** @type {Row} */ row) => row[0].length;
  /** @type {Order[]} */
  const found = [
    ["worst first", (one, other) => first(one) - first(other)],
    ["best first", (one, other) => first(other) - first(one)],
    ["as in the set", () => 0],
    ["longest first", (one, other) => size(other) - size(one)],
    ["shortest first", (one, other) => size(one) - size(other)],
  ];
  scored.slice(1).forEach(({ name }, place) => {
    const gain = (/** @type {Row} */ row) => row[3][place + 1] - first(row);
    found.push([`largest gains of ${name}`, (one, other) => gain(other) - gain(one)]);
    found.push([`largest losses of ${name}`, (one, other) => gain(one) - gain(other)]);
  });
  return found;
}

/**
 * All sentences, to be searched and sorted.
 * @param {Row[]} rows
 * @param {ScoredRun[]} scored
 */
function drawSentences(rows, scored) {
  const search = element("input", { type: "search", placeholder: "words in any of the texts", "aria-label": "search" });
  const choices = orders(scored);
  const sort = element("select", { "aria-label": "order" }, ...choices.map(([name], place) =>
    element("option", { value: place }, name)));
  const told = element("output"), list = element("div", { class: scored.length > 1 ? "several" : "" }), more = element("button", { type: "button" }, "More");
  /** @type {Row[]} */
  let found = [], shown = 0;
  const show = () => {
    list.append(...found.slice(shown, shown + SHOWN).map((row) => drawSentence(row, scored)));
    shown = Math.min(found.length, shown + SHOWN);
    more.hidden = shown === found.length;
    told.value = `${found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} sentences`;
  };
  const find = () => {
    const wanted = words(search.value.toLowerCase());
    found = rows.filter(([source, references, translations]) => {
      const text = [source, ...references, ...translations].join("\n").toLowerCase();
      return wanted.every((word) => text.includes(word));
    }).sort(choices[Number(sort.value)][1]);
    shown = 0;
    list.replaceChildren();
    show();
  };
  search.addEventListener("input", find);
  sort.addEventListener("change", find);
  more.addEventListener("click", show);
  find();
  return [element("div", { class: "controls" }, search, sort, told), list, more];
}
