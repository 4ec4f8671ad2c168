"use strict";
// What the proxy's memory of the last ten minutes says, and how it is asked.

const store = { about: null, series: [], samples: [], now: 0 };
const WINDOW = 600;
const LEAST_WINDOW = 60;

/** Takes an answer of /dashboard.json in. */
function absorb(answer) {
  if (store.boot !== answer.boot) {
    // Another process: what it was asked for does not exist there, all of it comes next time.
    store.samples = [];
    if (store.boot !== undefined) answer.samples = [];
    store.boot = answer.boot;
  }
  store.about = answer.about;
  store.now = answer.now;
  store.series = answer.series;
  const known = store.samples.length ? store.samples.at(-1).number : -1;
  store.samples.push(...answer.samples.filter((sample) => sample.number > known));
  store.samples = store.samples.filter((sample) => sample.at > store.now - WINDOW - 5);
}

/** The seconds that plots show: all that is known, ten minutes at most. */
function span() {
  const oldest = store.samples.length ? store.now - store.samples[0].at : 0;
  return Math.min(WINDOW, Math.max(LEAST_WINDOW, oldest));
}

/** The number after which something is new. */
function known() {
  return store.samples.length ? store.samples.at(-1).number : null;
}

/** The places of the series of this name that have these labels. */
function places(name, labels = {}) {
  const wanted = Object.entries(labels);
  const found = [];
  store.series.forEach(([is, has], place) => {
    if (is === name && wanted.every(([label, value]) => has[label] === value)) found.push(place);
  });
  return found;
}

/** The words that a label of a metric takes, in order. */
function words(name, label) {
  const has = store.series.filter(([is]) => is === name).map(([, labels]) => labels[label]);
  return [...new Set(has)].sort();
}

/** A gauge at each sample. */
function levels(name, labels) {
  const at = places(name, labels);
  return store.samples.map(({ values }) => at.reduce((sum, place) => sum + (values[place] ?? 0), 0));
}

/** What a counter grew by in a second, at each sample; the first has nothing before it. */
function rates(name, labels) {
  const counts = levels(name, labels);
  return counts.map((count, index) => {
    if (index === 0) return null;
    const seconds = store.samples[index].at - store.samples[index - 1].at;
    return Math.max(0, count - counts[index - 1]) / Math.max(seconds, 0.001);
  });
}

/** What a counter grew by in all that is known. */
function growth(name, labels) {
  const counts = levels(name, labels);
  return counts.length ? counts.at(-1) - counts[0] : 0;
}

/** A gauge's last value. */
function level(name, labels) {
  return levels(name, labels).at(-1) ?? 0;
}

/** The mean of the last few of these, which is calmer than the last one. */
function recent(values, count = 5) {
  const last = values.slice(-count).filter((value) => value !== null);
  return last.length ? last.reduce((sum, value) => sum + value, 0) / last.length : 0;
}

/** One by the other, at each sample; nothing by nothing is nothing. */
function each(over, under, scale = 1) {
  return over.map((value, index) => (value === null ? null : under[index] ? (value / under[index]) * scale : 0));
}

const format = {
  number(value) {
    if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
    if (value >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
    if (value >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
    return value.toFixed(value >= 10 ? 1 : 2);
  },
  bytes(value) {
    for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
      if (value >= size) return `${(value / size).toFixed(value / size >= 100 ? 0 : 1)} ${unit}`;
    }
    return `${Math.round(value)} B`;
  },
  percent: (value) => `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} %`,
  millis: (value) => value === 0 ? "0 ms" : `${value >= 100 ? Math.round(value) : value.toFixed(value >= 10 ? 1 : 2)} ms`,
  seconds: (value) => (value >= 1 ? `${value.toFixed(1)} s` : format.millis(value * 1e3)),
};

