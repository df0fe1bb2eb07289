// Small SVG helpers. Text goes in by textContent only.

const SVG_NS = "http://www.w3.org/2000/svg";

function svgEl(name, attrs = {}, parent = null) {
  const node = document.createElementNS(SVG_NS, name);
  put(node, attrs);
  parent?.append(node);
  return node;
}

// Set attributes, skipping those that already have the value: most of a repaint changes nothing.
function put(node, attrs) {
  const have = (node.mmAttrs ??= {});
  for (const key in attrs) {
    const value = attrs[key];
    if (have[key] === value) continue;
    have[key] = value;
    if (value === null) node.removeAttribute(key);
    else node.setAttribute(key, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
}

function putText(node, text) {
  if (node.mmText === text) return;
  node.mmText = text;
  node.textContent = text;
}

function htmlEl(name, className = "", parent = null, text = null) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  parent?.append(node);
  return node;
}

// A fold over the picture: it closes when the focus leaves it, and by Escape.
function closeWhenLeft(details) {
  const close = () => (details.open = false);
  details.addEventListener("focusout", (e) => details.contains(e.relatedTarget) || close());
  details.addEventListener("keydown", (e) => e.key === "Escape" && close());
}

// A growing set of like nodes: `use(n)` shows the first n and hides the rest, so scrubbing creates nothing.
class Pool {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.nodes = [];
  }

  use(count) {
    while (this.nodes.length < count) this.nodes.push(this.make(this.parent, this.nodes.length));
    this.nodes.forEach((node, i) => put(node.g ?? node, { display: i < count ? null : "none" }));
    return this.nodes;
  }
}

const graphemes = globalThis.Intl?.Segmenter ? new Intl.Segmenter(undefined, { granularity: "grapheme" }) : null;

function splitGraphemes(text) {
  return graphemes ? Array.from(graphemes.segment(text), (s) => s.segment) : Array.from(text);
}

// Widths and shortenings of text at a font, remembered.
class TextRuler {
  constructor() {
    this.context = document.createElement("canvas").getContext("2d");
    this.setFont(16, "sans-serif");
  }

  setFont(size, family) {
    const font = `${size}px ${family}`;
    if (font === this.font) return;
    this.size = size;
    this.font = font;
    this.widths = new Map();
    this.fits = new Map();
  }

  width(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      this.context.font = this.font;
      width = this.context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  // The text, or as much of its start as fits with an ellipsis.
  fit(text, room) {
    if (this.width(text) <= room) return text;
    const key = `${Math.round(room)}|${text}`;
    let fitted = this.fits.get(key);
    if (fitted === undefined) {
      const parts = splitGraphemes(text.slice(0, 200));
      while (parts.length > 1 && this.width(`${parts.join("")}…`) > room) parts.pop();
      fitted = `${parts.join("")}…`;
      this.fits.set(key, fitted);
    }
    return fitted;
  }
}

const LEAST_SCALE = 0.8;

// Put a word in a room: a little smaller when it is a little too wide, shortened when it is much too wide.
function putWord(node, text, room, ruler) {
  const scale = Math.min(1, Math.max(LEAST_SCALE, room / Math.max(ruler.width(text), 1)));
  put(node, { style: scale < 1 ? `font-size:${f1(ruler.size * scale)}px` : null });
  putText(node, ruler.fit(text, room / scale));
}

// Hatches, so that state never rests on colour alone.
function addPatterns(svg, uid) {
  const defs = svgEl("defs", {}, svg);
  const pattern = (name, size, draw) => {
    const p = svgEl("pattern", { id: `${uid}-${name}`, width: size, height: size, patternUnits: "userSpaceOnUse" }, defs);
    draw(p);
  };
  pattern("cached", 7, (p) => {
    put(p, { patternTransform: "rotate(45)" });
    svgEl("line", { x1: 0, y1: 0, x2: 0, y2: 7, class: "hatch-line" }, p);
  });
  pattern("stale", 7, (p) => svgEl("circle", { cx: 2, cy: 2, r: 1, class: "hatch-dot" }, p));
  pattern("reserved", 6, (p) => svgEl("line", { x1: 0, y1: 3, x2: 6, y2: 3, class: "hatch-line" }, p));
}
