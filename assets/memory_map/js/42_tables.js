// Block tables: logical index -> physical block, one list a sequence.

const MAX_ROWS = 24;

class Tables {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "tables", role: "group", "aria-label": _("Block tables") }, parent);
    this.heads = new Pool(this.g, (p) => {
      const g = svgEl("g", {}, p);
      return { g, chip: makeChip(g), text: svgEl("text", { class: "heading" }, g) };
    });
    this.rows = new Pool(this.g, (p) => {
      const g = svgEl("g", { class: "row", "data-kind": "row", role: "button", tabindex: -1 }, p);
      const rect = svgEl("rect", { rx: 4 }, g);
      return { g, rect, left: svgEl("text", { class: "left" }, g), arrow: svgEl("text", { class: "arrow" }, g), right: svgEl("text", { class: "right" }, g) };
    });
    this.byKey = new Map();
    this.roving = new Roving();
  }

  // Nothing is listed; returns the height, none.
  clear() {
    this.anchors = new Map();
    this.byKey.clear();
    this.roving.refresh([]);
    return 0;
  }

  // Which sequences to list: all that hold blocks while they fit, else the chosen one.
  shown(state) {
    const chosen = this.map.seq;
    const holders = state.seqs.map((_, i) => i).filter((i) => i === chosen || holdsBlocks(state.seqs[i]));
    const rows = holders.reduce((sum, i) => sum + 1.5 + Math.ceil(tableOf(state.seqs[i]).length / this.columns), 0);
    if (rows <= this.mostRows) return holders;
    return chosen === null ? holders.slice(0, 1) : [chosen];
  }

  // Height for the tallest lists of any frame, so that what is below holds still while the run plays.
  tallest() {
    const shapes = [...this.map.store.tableShapes].map((shape) => shape.split(",").map(Number));
    const fits = (sizes) => sizes.reduce((sum, n) => sum + 1.5 + Math.ceil(n / this.columns), 0) <= this.mostRows;
    const height = (sizes) => sizes.reduce((sum, n) => sum + this.listHeight(n), 0);
    return Math.max(0, ...shapes.map((sizes) => (fits(sizes) ? height(sizes) : Math.max(...sizes.map((n) => this.listHeight(n))))));
  }

  listHeight(numEntries) {
    const rows = Math.ceil(Math.min(Math.max(numEntries, 1), this.mostEntries) / this.columns);
    return 34 * this.map.picture.unit + rows * this.rowH;
  }

  // The most entries of a list: as many as have room under its heading.
  get mostEntries() {
    return Math.max(2, Math.min(MAX_ROWS, Math.floor(this.mostRows - 1.5))) * this.columns;
  }

  // Lay out the lists, one under the other, each in as many columns as fit; returns the height.
  place(state, x, y, width, room) {
    const unit = this.map.picture.unit;
    this.rowH = 25 * unit;
    this.mostRows = room / this.rowH;
    this.columns = Math.max(1, Math.floor(width / (100 * unit)));
    this.anchors = new Map();
    const heads = [];
    const rows = [];
    let top = y;
    for (const seq of this.shown(state)) {
      heads.push({ seq, x, y: top, room: width });
      top = this.placeList(state.seqs[seq], seq, { x, y: top + 24 * unit, width }, rows) + 10 * unit;
    }
    this.paintHeads(heads);
    this.paintRows(rows);
    return top - y;
  }

  placeList(s, seq, { x, y, width }, rows) {
    const unit = this.map.picture.unit;
    const entries = tableOf(s);
    const hidden = entries.length > this.mostEntries ? entries.length - this.mostEntries + 1 : 0; // one says so
    const w = width / this.columns;
    const cell = (i) => ({ seq, x: x + (i % this.columns) * w, y: y + Math.floor(i / this.columns) * this.rowH, w: w - (this.columns > 1 ? 5 * unit : 0), h: this.rowH - 3 * unit });
    entries.slice(hidden).forEach((entry, i) => rows.push({ ...cell(i), ...entry }));
    let count = entries.length - hidden;
    if (hidden) rows.push({ ...cell(count++), note: _("first {n} above", { n: hidden }) });
    if (!entries.length) rows.push({ ...cell(count++), note: _("no blocks") });
    return y + Math.ceil(count / this.columns) * this.rowH;
  }

  paintHeads(list) {
    const unit = this.map.picture.unit;
    this.heads.use(list.length).forEach((head, i) => {
      if (i >= list.length) return;
      const { seq, x, y, room } = list[i];
      const width = paintChip(head.chip, { text: this.map.letter(seq), colour: this.map.colour(seq) }, 18 * unit);
      put(head.g, { transform: `translate(${f1(x)} ${f1(y)})`, class: seq === this.map.seq ? "head chosen" : "head" });
      put(head.text, { x: width + 6 * unit, y: 13 * unit });
      putWord(head.text, _("block table"), room - width - 6 * unit, this.map.picture.ruler);
    });
  }

  paintRows(rows) {
    this.byKey.clear();
    this.rows.use(rows.length).forEach((node, i) => {
      if (i >= rows.length) return;
      const r = rows[i];
      if (r.note !== undefined) this.paintNote(node, r);
      else this.paintEntry(node, r);
    });
    const entries = this.rows.nodes.filter((_, i) => i < rows.length && rows[i].note === undefined);
    this.roving.refresh(entries.map((node) => node.g));
  }

  paintNote(node, r) {
    put(node.g, {
      transform: `translate(${f1(r.x)} ${f1(r.y)})`, style: null, class: "row quiet", role: null, tabindex: null,
      "data-kind": null, "data-seq": null, "data-logical": null, "data-block": null, "aria-label": null,
    });
    this.paintRowText(node, r, this.map.picture.ruler.fit(r.note, r.w - 12), "", "");
  }

  paintEntry(node, r) {
    const physical = r.cpu ? _("CPU block {id}", { id: r.block }) : _("physical block {id}", { id: r.block });
    put(node.g, {
      transform: `translate(${f1(r.x)} ${f1(r.y)})`, style: `--o:${this.map.colour(r.seq)}`, class: `row${r.cpu ? " swapped" : ""}`,
      role: "button",
      "data-kind": r.cpu ? "cpu" : "row", "data-seq": r.seq, "data-logical": r.logical, "data-block": r.block,
      "aria-label": entryText(this.map.seqName(r.seq), r.logical, physical),
    });
    this.paintRowText(node, r, String(r.logical), "→", r.cpu ? _("cpu {id}", { id: r.block }) : String(r.block));
    if (r.cpu) return;
    this.byKey.set(`${r.seq}:${r.logical}`, node.g);
    this.anchors.set(`${r.seq}:${r.logical}`, { x: r.x + r.w, y: r.y + r.h / 2, block: r.block, seq: r.seq, box: r });
  }

  paintRowText(node, r, left, arrow, right) {
    const mid = r.h / 2 + 0.5;
    put(node.rect, { width: r.w, height: r.h });
    put(node.left, { x: 8, y: mid });
    put(node.arrow, { x: r.w / 2, y: mid });
    put(node.right, { x: r.w - 8, y: mid });
    putText(node.left, left);
    putText(node.arrow, arrow);
    putText(node.right, right);
  }
}

// A sequence's table as entries: on the device, or in the swap pool while it is swapped out.
function tableOf(s) {
  const entry = (cpu) => (block, logical) => ({ logical, block, cpu });
  return s.table.length ? s.table.map(entry(false)) : s.cpu_table.map(entry(true));
}

function holdsBlocks(s) {
  return s !== undefined && tableOf(s).length > 0;
}

// Threads from table rows to blocks, through the gutters. Seen are those of the newest rows and of the row that is lit.
class Threads {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "threads", "aria-hidden": "true" }, parent);
    this.pool = new Pool(this.g, (p) => ({ g: svgEl("path", { class: "thread" }, p) }));
    this.byKey = new Map();
  }

  // The rows that this frame brought; in a frame that brought none, the last row of the chosen sequence.
  newestOf(anchors) {
    const { store, frame, seq, state } = this.map;
    const brought = frame.changes.filter((c) => c.logical !== undefined).map((c) => `${store.seqIndex(c.seq_id)}:${c.logical}`);
    const keys = new Set(brought.filter((key) => anchors.has?.(key)));
    return keys.size || seq === null ? keys : new Set([`${seq}:${state.seqs[seq].table.length - 1}`]);
  }

  paint(anchors, grid, bus) {
    this.byKey.clear();
    const entries = grid.plan?.detail && grid.plan.detail !== "cells" && bus.width > 0 ? [...anchors] : [];
    const newest = this.newestOf(anchors);
    const perRow = new Map();
    this.pool.use(entries.length).forEach(({ g }, i) => {
      if (i >= entries.length) return;
      const [key, from] = entries[i];
      const box = grid.boxOf(from.block);
      if (!box) return;
      const row = grid.cards[from.block].box.row;
      const lane = perRow.get(row) ?? 0;
      perRow.set(row, lane + 1);
      const step = Math.min(4, (grid.plan.gapY - 6) / 4);
      const gutterY = box.y - grid.plan.gapY / 2 + ((lane % 4) - 1.5) * step;
      const spread = Math.min(5, (bus.width - 10) / entries.length);
      const busX = bus.x + bus.width / 2 + (i - (entries.length - 1) / 2) * -spread;
      const sharers = entries.filter(([, a]) => a.block === from.block);
      const nth = sharers.findIndex(([k]) => k === key);
      const to = { x: box.x + 16 + nth * 9, y: box.y - 1 };
      put(g, {
        d: threadPath(from, busX, gutterY, to, 6), style: `--o:${this.map.colour(from.seq)}`,
        class: `thread${newest.has(key) ? " newest" : ""}`,
      });
      this.byKey.set(key, g);
    });
  }
}
