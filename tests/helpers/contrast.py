"""How well the texts of SVG pictures stand out: axe judges HTML only."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

from tests.helpers.waiting import until_equal

ENOUGH = 4.5
"""WCAG 2.2, success criterion 1.4.3, for text that is not large."""

_MEASURE = """
(enough) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {                       // whatever CSS can say: the browser paints one pixel of it
    if (!known.has(colour)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const opacity = (node, top) => {                 // of the node and all around it, up to the picture
    let part = 1;
    for (; node && node !== top.parentElement; node = node.parentElement) part *= getComputedStyle(node).opacity;
    return part;
  };
  const painted = (node, colour, part, top) => {
    const [r, g, b, a] = rgba(colour);
    return [r, g, b, a * Number(part) * opacity(node, top)];
  };
  const groundOf = (node) => {                     // of the HTML below the picture
    const layers = [];
    for (; node; node = node.parentElement ?? node.getRootNode().host) {
      layers.push(rgba(getComputedStyle(node).backgroundColor));
    }
    return layers.reverse().reduce((ground, layer) => over(layer, ground), [255, 255, 255]);
  };
  const groundColour = (svg, fill) => {            // of a pattern: what its lines and dots are drawn on
    const name = fill.match(/^url\\("?#([^")]+)/)?.[1];
    if (!name) return fill;
    const ground = svg.getRootNode().getElementById(name)?.querySelector("rect");
    return ground ? getComputedStyle(ground).fill : "none";
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const seen = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true };
  const pictures = [];
  const search = (root) => {
    for (const node of root.querySelectorAll("*")) {
      if (node.shadowRoot) search(node.shadowRoot);
      if (node.localName === "svg" && !node.ownerSVGElement && node.querySelector("text")) pictures.push(node);
    }
  };
  search(document);
  const faint = [];
  let count = 0;
  for (const svg of pictures) {
    const ground = groundOf(svg.parentElement);
    const shapes = [];
    for (const node of svg.querySelectorAll("rect, path, text")) {
      const box = node.getBoundingClientRect(), style = getComputedStyle(node);
      if (!box.width || !box.height || !node.checkVisibility(seen)) continue;
      if (node.localName !== "text") {
        const fill = groundColour(svg, style.fill);
        if (fill !== "none") shapes.push([box, painted(node, fill, style.fillOpacity, svg)]);
        continue;
      }
      const ink = painted(node, style.fill, style.fillOpacity, svg);
      if (!node.textContent.trim() || !ink[3]) continue; // some are hidden by having no colour
      count += 1;
      const x = box.x + box.width / 2, y = box.y + box.height / 2;
      let below = ground;
      for (const [b, colour] of shapes) {
        if (b.left <= x && x <= b.right && b.top <= y && y <= b.bottom) below = over(colour, below);
      }
      const text = over(ink, below);
      const [darker, lighter] = [light(text), light(below)].sort((one, other) => one - other);
      const contrast = (lighter + 0.05) / (darker + 0.05);
      if (contrast >= enough) continue;
      faint.push(`${contrast.toFixed(2)} ${node.getAttribute("class") ?? ""} ${node.textContent.slice(0, 30)}`);
    }
  }
  return { count, faint: [...new Set(faint)].sort() };
}
"""


def svg_texts(page: Page) -> dict[str, Any]:
    """`count` of the texts that are shown in pictures; `faint`: contrast, class and text of those below ENOUGH."""
    measured: dict[str, Any] = page.evaluate(_MEASURE, ENOUGH)
    return measured


def expect_readable_pictures(page: Page) -> None:
    """Judged once more while something is found: a page that still fades in is paler than it will be."""
    until_equal(lambda: svg_texts(page)["faint"], [])
