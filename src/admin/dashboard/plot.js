// Plots of ten minutes, drawn as SVG.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 150;
const MARGIN = { top: 8, right: 4, bottom: 18, left: 52 };

function shape(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function element(parent, name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

/** The least round number that is not below; bytes are round in powers of two. */
function ceiling(value, show) {
  if (value <= 0) return 1;
  const base = show === format.bytes ? 2 : 10;
  const power = base ** Math.floor(Math.log(value) / Math.log(base));
  const steps = base === 2 ? [1, 1.5, 2] : [1, 2, 2.5, 5, 10];
  return steps.map((step) => step * power).find((round) => round >= value * 0.999) ?? value;
}

function ago(seconds) {
  if (seconds === 0) return "now";
  return seconds >= 120 ? `-${Number((seconds / 60).toFixed(1))} min` : `-${Math.round(seconds)} s`;
}

/** A plot in a figure: lines, or areas on top of each other. */
class Plot {
  constructor(figure, { show = format.number, stacked = false }) {
    Object.assign(this, { figure, show, stacked, lines: [], hovered: null });
    this.svg = shape(figure, "svg", { role: "img" });
    this.legend = element(figure, "ul", "legend");
    this.svg.addEventListener("pointermove", (event) => this.hover(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
  }

  /** `lines`: a name, a tone from 0 to 7, and a value for each sample. */
  draw(lines) {
    this.lines = lines.filter(({ values }) => values.some((value) => value > 0));
    this.render();
  }

  render() {
    this.svg.toggleAttribute("hidden", !this.lines.length);
    if (!this.lines.length) {
      this.label();
      return;
    }
    const width = this.svg.clientWidth;
    if (!width) return;
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const right = width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    this.x = (index) => {
      const age = store.now - store.samples[index].at;
      return right - (Math.min(age, span()) / span()) * (right - MARGIN.left);
    };
    const stacks = this.stack();
    const highest = ceiling(Math.max(0, ...stacks.flatMap(({ tops }) => tops)), this.show);
    this.y = (value) => bottom - (value / highest) * (bottom - MARGIN.top);
    for (const part of [0, 0.5, 1]) {
      const y = this.y(highest * part);
      shape(this.svg, "line", { class: "grid", x1: MARGIN.left, x2: right, y1: y, y2: y });
      const text = { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" };
      shape(this.svg, "text", text, this.show(highest * part));
    }
    for (const [part, anchor] of [[1, "start"], [0.5, "middle"], [0, "end"]]) {
      const x = right - part * (right - MARGIN.left);
      const text = { x, y: HEIGHT - 4, "text-anchor": anchor };
      shape(this.svg, "text", text, ago(part * span()));
    }
    for (const stack of stacks) this.trace(stack);
    this.cross();
    this.label();
  }

  /** Each line's lower and upper edge. */
  stack() {
    let floor = store.samples.map(() => 0);
    return this.lines.map((line) => {
      const bottoms = floor;
      const tops = line.values.map((value, index) => (value ?? 0) + (this.stacked ? bottoms[index] : 0));
      if (this.stacked) floor = tops;
      return { line, bottoms, tops };
    });
  }

  trace({ line, bottoms, tops }) {
    const first = line.values.findIndex((value) => value !== null);
    if (first < 0) return;
    const point = (edge, index) => `${this.x(index).toFixed(1)} ${this.y(edge[index]).toFixed(1)}`;
    const indexes = [...tops.keys()].slice(first);
    const top = `M${indexes.map((index) => point(tops, index)).join("L")}`;
    if (this.stacked) {
      const back = indexes.reverse().map((index) => point(bottoms, index)).join("L");
      shape(this.svg, "path", { class: `area t${line.tone}`, d: `${top}L${back}Z` });
    } else {
      shape(this.svg, "path", { class: `line t${line.tone}`, d: top });
    }
  }

  hover(event) {
    const x = event.clientX - this.svg.getBoundingClientRect().left;
    let nearest = null;
    store.samples.forEach((_, index) => {
      const distance = Math.abs(this.x(index) - x);
      if (nearest === null || distance < Math.abs(this.x(nearest) - x)) nearest = index;
    });
    this.hovered = nearest === null ? null : store.samples[nearest].number;
    this.cross();
    this.label();
  }

  leave() {
    this.hovered = null;
    this.cross();
    this.label();
  }

  /** The place of the sample that is pointed at. */
  place() {
    if (this.hovered === null) return -1;
    return store.samples.findIndex(({ number }) => number === this.hovered);
  }

  cross() {
    this.svg.querySelector(".cross")?.remove();
    const place = this.place();
    if (place < 0) return;
    const x = this.x(place);
    shape(this.svg, "line", { class: "cross", x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
  }

  label() {
    this.legend.replaceChildren();
    const place = this.place();
    if (place >= 0) {
      const when = new Date(Date.now() - (store.now - store.samples[place].at) * 1e3);
      element(this.legend, "li", "time", when.toLocaleTimeString("en-GB"));
    }
    for (const { name, tone, values } of this.lines) {
      const value = place >= 0 ? (values[place] ?? 0) : recent(values);
      const item = element(this.legend, "li", `t${tone}`, `${name} `);
      element(item, "b", "", this.show(value));
    }
    if (!this.lines.length) element(this.legend, "li", "none", "nothing in these ten minutes");
    const said = this.lines.map(({ name, values }) => `${name} ${this.show(recent(values))}`);
    this.svg.setAttribute("aria-label", said.join(", ") || "nothing in these ten minutes");
  }
}

