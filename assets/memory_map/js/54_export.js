// The picture as SVG and PNG, the frames as JSON: made here, sent nowhere.

const STYLE_PROPS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "display", "visibility", "paint-order", "stroke-linejoin"];
const PNG_SCALE = 2;

class Exports {
  constructor(map, parent) {
    this.map = map;
    this.menu = htmlEl("details", "exports", parent);
    htmlEl("summary", "", this.menu, _("Export"));
    const list = htmlEl("div", "menu", this.menu);
    list.addEventListener("mousedown", (e) => e.preventDefault()); // a click here must not first take the focus away
    closeWhenLeft(this.menu);
    this.item(list, _("SVG picture"), () => this.saveSvg());
    this.item(list, _("PNG picture"), () => this.savePng());
    this.item(list, _("Frames as JSON"), () => this.saveJson());
  }

  item(list, text, action) {
    const b = htmlEl("button", "", list, text);
    b.type = "button";
    b.onclick = () => {
      this.close();
      action();
    };
  }

  close() {
    this.menu.open = false;
  }

  saveSvg() {
    download(new Blob([this.svgText()], { type: "image/svg+xml" }), `${this.name()}.svg`);
  }

  async savePng() {
    const url = URL.createObjectURL(new Blob([this.svgText()], { type: "image/svg+xml" }));
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width * PNG_SCALE;
    canvas.height = image.height * PNG_SCALE;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((blob) => download(blob, `${this.name()}.png`), "image/png");
  }

  saveJson() {
    download(new Blob([JSON.stringify(this.frames())], { type: "application/json" }), `${this.name()}.json`);
  }

  svgText() {
    const { root, picture, payload, frame } = this.map;
    const background = getComputedStyle(root).getPropertyValue("--st-background-color").trim() || "#fff";
    const heading = payload.title ? `${payload.title}: ${frame.label}` : frame.label;
    return standaloneSvg(picture.svg, background, [heading, frame.headline ?? ""]);
  }

  // The payload, with what a live line has added since.
  frames() {
    const { payload, store, traceId } = this.map;
    const { schema, title, palette, places } = payload;
    return { schema, title, trace_id: traceId, palette, places, frames: store.frames.flatMap((f) => f.parts) };
  }

  name() {
    return `memory-map-${this.map.frame.label.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "frame"}`;
  }
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A copy of the picture with every style resolved, so that it looks the same with no style sheet around it.
function standaloneSvg(svg, background, notes) {
  const copy = svg.cloneNode(true);
  const paint = new PaintResolver();
  inlineStyles(svg, copy, paint);
  const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
  const [pad, line] = [16, 20];
  const total = height + 2 * pad + notes.length * line;
  put(copy, { xmlns: SVG_NS, viewBox: `${-pad} ${-pad} ${width + 2 * pad} ${total}`, width: width + 2 * pad, height: total });
  const ground = svgEl("rect", { x: -pad, y: -pad, width: width + 2 * pad, height: total, fill: paint.resolve(background) });
  copy.querySelector("defs").after(ground);
  const ink = paint.resolve(getComputedStyle(svg).color);
  notes.forEach((note, i) => {
    const text = svgEl("text", { x: 0, y: height + line * (i + 0.8), fill: ink, "font-size": 13, "font-family": "sans-serif" }, copy);
    text.textContent = note;
  });
  return new XMLSerializer().serializeToString(copy);
}

function inlineStyles(from, to, paint) {
  const style = getComputedStyle(from);
  const rules = STYLE_PROPS.map((p) => [p, style.getPropertyValue(p)]).filter(([, v]) => v && v !== "normal");
  to.setAttribute("style", rules.map(([p, v]) => `${p}:${p === "fill" || p === "stroke" ? paint.resolve(v) : v}`).join(";"));
  to.removeAttribute("class");
  Array.from(from.children).forEach((child, i) => inlineStyles(child, to.children[i], paint));
}

// Any CSS colour as rgba(), which every SVG reader knows.
class PaintResolver {
  constructor() {
    this.context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    this.known = new Map();
  }

  resolve(value) {
    if (value === "none" || value.startsWith("url(")) return value.replace(/"/g, "'");
    if (!this.known.has(value)) this.known.set(value, this.read(value));
    return this.known.get(value);
  }

  read(value) {
    this.context.clearRect(0, 0, 1, 1);
    this.context.fillStyle = value;
    this.context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = this.context.getImageData(0, 0, 1, 1).data;
    return a === 255 ? `rgb(${r},${g},${b})` : `rgba(${r},${g},${b},${(a / 255).toFixed(3)})`;
  }
}
