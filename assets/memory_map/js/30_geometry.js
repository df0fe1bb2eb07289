// Where things go. Pure functions of sizes: the same input gives the same picture.

const DETAILS = ["text", "slots", "cells"];
const LEAST_CELL = 7;
const MOST_SLOTS = 1500; // drawn one by one
const TEXT_MAY_EXCEED = 1.5; // words are worth more height than a page asked for, never more than there is
const DENSITIES = [1, 0.8]; // full boxes, then tighter ones
const TIGHT = 0.9; // of a usual word's width: the longest of them are written a little smaller

// The ways to lay `count` blocks of `blockSize` slots into a width, from the richest that fits the height: boxes with
// words, boxes with slots, cells. One rule for all pages.
function planBlocks({ count, blockSize, width, maxHeight, mostForText, unit, wordWidth }) {
  for (const name of DETAILS.slice(0, -1)) {
    const allowed = name === "text" ? mostForText : maxHeight;
    if (count * blockSize > MOST_SLOTS) continue;
    for (const density of DENSITIES) {
      const plan = planCards(name, count, blockSize, width, unit, density, wordWidth, allowed);
      if (plan && plan.height <= allowed) return plan;
    }
  }
  return planCells(count, width, maxHeight, unit);
}

// density: 1 is roomy; below it boxes are lower and closer, their words as large as before.
function planCards(detail, count, blockSize, width, unit, density, wordWidth, maxHeight) {
  const text = detail === "text";
  const sizes = {
    pad: 6 * unit * density, header: (text ? 24 : 19) * unit * density, slotGap: (text ? 3 : 2) * unit,
    slotH: (text ? 30 : 10) * unit * density, minSlot: text ? wordWidth * TIGHT * Math.sqrt(density) : 9 * unit * density,
    maxSlot: (text ? 84 : 14) * unit, gapX: (text ? 14 : 10) * unit * density,
    gapY: (text ? 16 : 10) * unit * density, minWidth: (text ? 100 : 62) * unit * density,
  };
  const plans = slotsPerLineChoices(blockSize).map((perLine) => cardsPlan(detail, count, blockSize, width, perLine, sizes, maxHeight));
  return plans.filter(Boolean).reduce((best, p) => (!best || p.cost < best.cost ? p : best), null);
}

function slotsPerLineChoices(blockSize) {
  const choices = new Set();
  for (let lines = 1; lines <= blockSize; lines++) choices.add(Math.ceil(blockSize / lines));
  return [...choices].filter((perLine) => perLine <= 16 && (perLine > 1 || blockSize < 3));
}

function cardsPlan(detail, count, blockSize, width, perLine, z, maxHeight) {
  const lines = Math.ceil(blockSize / perLine);
  const cardWidth = (slot) => Math.max(z.minWidth, 2 * z.pad + perLine * slot + (perLine - 1) * z.slotGap);
  let cols = Math.min(count, Math.floor((width + z.gapX) / (cardWidth(z.minSlot) + z.gapX)));
  if (cols < 1) return null;
  const rows = Math.ceil(count / cols);
  cols = Math.ceil(count / rows);
  const room = (width - (cols - 1) * z.gapX) / cols;
  const slotW = Math.min(z.maxSlot, (room - 2 * z.pad - (perLine - 1) * z.slotGap) / perLine);
  const cellW = cardWidth(slotW);
  const cellH = z.header + lines * (z.slotH + z.slotGap) - z.slotGap + z.pad;
  const height = rows * (cellH + z.gapY);
  const slotSpan = (cellW - 2 * z.pad + z.slotGap) / perLine - z.slotGap;
  return {
    detail, cols, rows, cellW, cellH, height, gapX: z.gapX, gapY: z.gapY, header: z.header, pad: z.pad,
    slotW: slotSpan, slotH: z.slotH, slotGap: z.slotGap, perLine, blockSize,
    cost: height * (lines === 1 && height <= maxHeight ? 0.72 : 1), // one line a block reads best, if there is room
  };
}

function planCells(count, width, maxHeight, unit) {
  const gap = count > 900 ? 2 : 3 * unit;
  const area = Math.max(0, width) * Math.max(0, maxHeight); // what stands above may have taken all the height
  const fitting = Math.sqrt(area / Math.max(count, 1)) - gap;
  const rowsOf = (size) => Math.ceil(count / Math.max(1, Math.floor((width + gap) / (size + gap))));
  let size = Math.max(LEAST_CELL, Math.min(44 * unit, fitting));
  while (size > LEAST_CELL && rowsOf(size) * (size + gap) > maxHeight) size = Math.max(LEAST_CELL, size - 0.5);
  const rows = rowsOf(size);
  const cols = Math.max(1, Math.floor((width + gap) / (size + gap)));
  return {
    detail: "cells", cols, rows, cellW: size, cellH: size, gapX: gap, gapY: gap, header: 0, pad: 0,
    height: rows * (size + gap), perLine: 0, blockSize: 0, cost: 0,
  };
}

// Rectangle of a block under a plan, and of a slot in its card, relative to the plan's origin.
function blockBox(plan, id) {
  const col = id % plan.cols;
  const row = Math.floor(id / plan.cols);
  return { x: col * (plan.cellW + plan.gapX), y: plan.gapY + row * (plan.cellH + plan.gapY), w: plan.cellW, h: plan.cellH, row, col };
}

function slotBox(plan, offset) {
  const col = offset % plan.perLine;
  const line = Math.floor(offset / plan.perLine);
  return {
    x: plan.pad + col * (plan.slotW + plan.slotGap), y: plan.header + line * (plan.slotH + plan.slotGap),
    w: plan.slotW, h: plan.slotH,
  };
}

// Contiguous memory: one line of slots, wrapped. Words while slots are few, bare slots with inner labels when not.
function planArena(numSlots, width, maxHeight, unit, wordWidth) {
  if (numSlots <= 64) {
    const cols = evenColumns(numSlots, Math.max(1, Math.floor(width / Math.min(wordWidth, width / 4))));
    const rows = Math.ceil(numSlots / cols);
    const h = Math.min(32 * unit, maxHeight / rows - 17 * unit);
    if (h >= 20 * unit) return { numSlots, cols, w: Math.min(width / cols, 92 * unit), h, band: 17 * unit, text: true };
  }
  const h = 24 * unit;
  const band = 7 * unit;
  const mostRows = Math.max(1, Math.floor(Math.min(maxHeight, 300 * unit) / (h + band)));
  const rows = Math.min(mostRows, Math.ceil((numSlots * 9 * unit) / width));
  const cols = evenColumns(numSlots, Math.ceil(numSlots / rows));
  return { numSlots, cols, w: width / cols, h, band, text: false };
}

// At most `most` columns: the largest number that fills every row, else as even as can be.
function evenColumns(count, most) {
  if (most >= count) return count;
  for (let cols = most; cols >= most / 2; cols--) if (count % cols === 0) return cols;
  const even = Math.ceil(count / Math.ceil(count / most));
  const rounded = Math.ceil(even / 4) * 4;
  return rounded <= most ? rounded : even;
}

function arenaHeight(plan) {
  return Math.ceil(plan.numSlots / plan.cols) * (plan.h + plan.band);
}

// The rows a run of slots covers: one piece a row.
function arenaRuns(plan, start, count) {
  const runs = [];
  for (let slot = start; slot < start + count; ) {
    const row = Math.floor(slot / plan.cols);
    const n = Math.min((row + 1) * plan.cols, start + count) - slot;
    runs.push({ slot, n, x: (slot % plan.cols) * plan.w, y: row * (plan.h + plan.band) + plan.band, w: n * plan.w, h: plan.h });
    slot += n;
  }
  return runs;
}

// A thread that keeps to the gutters: out of the table row, along the bus, into the gutter above the block, down.
function threadPath(from, busX, gutterY, to, radius) {
  const points = [[from.x, from.y], [busX, from.y], [busX, gutterY], [to.x, gutterY], [to.x, to.y]];
  return roundedPath(points, radius);
}

function roundedPath(points, radius) {
  const clean = points.filter(([x, y], i) => i === 0 || Math.hypot(x - points[i - 1][0], y - points[i - 1][1]) > 0.5);
  let d = `M${f1(clean[0][0])} ${f1(clean[0][1])}`;
  for (let i = 1; i < clean.length - 1; i++) {
    const [[px, py], [x, y], [nx, ny]] = [clean[i - 1], clean[i], clean[i + 1]];
    const before = Math.hypot(x - px, y - py);
    const after = Math.hypot(nx - x, ny - y);
    const r = Math.min(radius, before / 2, after / 2);
    const [ax, ay] = [x + ((px - x) / before) * r, y + ((py - y) / before) * r];
    const [bx, by] = [x + ((nx - x) / after) * r, y + ((ny - y) / after) * r];
    d += `L${f1(ax)} ${f1(ay)}Q${f1(x)} ${f1(y)} ${f1(bx)} ${f1(by)}`;
  }
  const [lx, ly] = clean.at(-1);
  return `${d}L${f1(lx)} ${f1(ly)}`;
}

function f1(value) {
  return Math.round(value * 10) / 10;
}
