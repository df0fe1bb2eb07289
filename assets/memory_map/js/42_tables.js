// Block tables: logical index -> physical block, one list a sequence.

const MAX_ROWS = 24;

class Tables {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "tables", role: "group", "aria-label": "Block tables" }, parent);
    this.heads = new Pool(this.g, (p) => {
      const g = svgEl("g", {}, p);
      return { g, chip: makeChip(g, 18), text: svgEl("text", { class: "heading" }, g) };
    });
    this.rows = new Pool(this.g, (p) => {
      const g = svgEl("g", { class: "row", "data-kind": "row", role: "button", tabindex: -1 }, p);
      const rect = svgEl("rect", { rx: 4 }, g);
      return { g, rect, left: svgEl("text", { class: "left" }, g), arrow: svgEl("text", { class: "arrow" }, g), right: svgEl("text", { class: "right" }, g) };
    });
    this.byKey = new Map();
  }

  // Which sequences to list: all that are alive while they fit, else the chosen one.
  shown(state) {
    const chosen = this.map.seq;
    const live = state.seqs.map((_, i) => i).filter((i) => isLiveSeq(state, i));
    const rows = live.reduce((sum, i) => sum + 1.5 + Math.max(state.seqs[i].table.length, 1), 0);
    if (!this.map.onlyChosen && rows <= this.map.tableRoom) return live;
    return chosen === null || !state.seqs[chosen] ? live.slice(0, 1) : [chosen];
  }

  // Lay out the lists in a column; returns the height.
  place(state, x, y, width) {
    const unit = this.map.unit;
    const rowH = 25 * unit;
    this.anchors = new Map();
    this.heads.list = [];
    const rows = [];
    let top = y;
    for (const seq of this.shown(state)) {
      const s = state.seqs[seq];
      const hidden = Math.max(0, s.table.length - MAX_ROWS);
      this.heads.list.push({ seq, x, y: top, swapped: s.cpu_table.length });
      top += 24 * unit;
      s.table.slice(hidden).forEach((block, i) => {
        rows.push({ seq, logical: hidden + i, block, x, y: top, w: width, h: rowH - 3 * unit });
        top += rowH;
      });
      if (hidden) rows.push({ seq, note: `first ${hidden} not drawn`, x, y: top, w: width, h: rowH - 3 * unit }) && (top += rowH);
      if (!s.table.length) {
        rows.push({ seq, note: s.cpu_table.length ? `swapped: CPU ${s.cpu_table.join(", ")}` : "no blocks", x, y: top, w: width, h: rowH - 3 * unit });
        top += rowH;
      }
      top += 10 * unit;
    }
    this.paintHeads();
    this.paintRows(rows);
    return top - y;
  }

  paintHeads() {
    const list = this.heads.list;
    const unit = this.map.unit;
    this.heads.use(list.length).forEach((head, i) => {
      if (i >= list.length) return;
      const { seq, x, y } = list[i];
      const width = paintChip(head.chip, { text: this.map.letter(seq), colour: this.map.colour(seq) }, 18);
      put(head.g, { transform: `translate(${f1(x)} ${f1(y)})`, class: seq === this.map.seq ? "head chosen" : "head" });
      put(head.text, { x: width + 6 * unit, y: 13 * unit });
      putText(head.text, "block table");
    });
  }

  paintRows(rows) {
    this.byKey.clear();
    this.rows.use(rows.length).forEach((node, i) => {
      if (i >= rows.length) return;
      const r = rows[i];
      const isNote = r.note !== undefined;
      put(node.g, {
        transform: `translate(${f1(r.x)} ${f1(r.y)})`, style: `--o:${this.map.colour(r.seq)}`, class: isNote ? "row quiet" : "row",
        "data-seq": isNote ? null : r.seq, "data-logical": isNote ? null : r.logical, "data-block": isNote ? null : r.block,
        "data-kind": isNote ? null : "row", role: isNote ? null : "button", tabindex: isNote ? null : this.map.rovingRow === i ? 0 : -1,
        "aria-label": isNote ? null : `${this.map.seqName(r.seq)}: logical block ${r.logical} is physical block ${r.block}`,
      });
      put(node.rect, { width: r.w, height: r.h });
      const mid = r.h / 2 + 0.5;
      put(node.left, { x: 8, y: mid });
      put(node.arrow, { x: r.w / 2, y: mid });
      put(node.right, { x: r.w - 8, y: mid });
      putText(node.left, isNote ? this.map.ruler.fit(r.note, r.w - 12) : String(r.logical));
      putText(node.arrow, isNote ? "" : "→");
      putText(node.right, isNote ? "" : String(r.block));
      if (isNote) return;
      this.byKey.set(`${r.seq}:${r.logical}`, node.g);
      this.anchors.set(`${r.seq}:${r.logical}`, { x: r.x + r.w, y: r.y + r.h / 2, block: r.block, seq: r.seq, box: r });
    });
    this.numRows = rows.length;
  }

  moveFocus(node, key) {
    const delta = { ArrowUp: -1, ArrowDown: 1 }[key];
    const rows = this.rows.nodes.slice(0, this.numRows).filter((r) => r.g.dataset.kind === "row");
    const next = rows[rows.findIndex((r) => r.g === node) + delta];
    if (delta === undefined || !next) return false;
    put(node, { tabindex: -1 });
    put(next.g, { tabindex: 0 });
    this.map.rovingRow = this.rows.nodes.indexOf(next);
    next.g.focus();
    return true;
  }
}

// Threads from table rows to blocks, through the gutters.
class Threads {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "threads", "aria-hidden": "true" }, parent);
    this.pool = new Pool(this.g, (p) => ({ g: svgEl("path", { class: "thread" }, p) }));
    this.byKey = new Map();
  }

  paint(anchors, grid, bus) {
    this.byKey.clear();
    const entries = grid.plan?.detail && grid.plan.detail !== "cells" && bus.width > 0 ? [...anchors] : [];
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
        class: `thread${from.seq === this.map.seq ? " chosen" : ""}`, "marker-end": null,
      });
      this.byKey.set(key, g);
    });
  }
}
