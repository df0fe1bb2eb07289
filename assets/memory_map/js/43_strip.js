// The chosen sequence in reading order, with its two cursors: tokens known, and keys and values written.

class TokenStrip {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "strip", role: "group" }, parent);
    this.title = svgEl("text", { class: "heading" }, this.g);
    this.cells = new Pool(this.g, (p) => {
      const g = svgEl("g", { class: "tok", "data-kind": "token" }, p);
      return { g, rect: svgEl("rect", { rx: 4 }, g), text: svgEl("text", { class: "piece" }, g) };
    });
    this.brackets = new Pool(this.g, (p) => {
      const g = svgEl("g", { class: "bracket" }, p);
      return { g, line: svgEl("path", {}, g), text: svgEl("text", {}, g) };
    });
    this.flags = new Pool(this.g, (p) => {
      const g = svgEl("g", { class: "flag" }, p);
      return { g, line: svgEl("path", {}, g), text: svgEl("text", {}, g) };
    });
    this.byPos = new Map();
  }

  place(state, x, y, width) {
    const s = this.map.seq === null ? undefined : state.seqs[this.map.seq];
    put(this.g, { display: s ? null : "none" });
    if (!s) return 0;
    const unit = this.map.unit;
    this.lineH = 62 * unit;
    const { first, cells, lines } = this.flow(s, x, width);
    const top = y + 20 * unit;
    put(this.g, { style: `--o:${this.map.colour(this.map.seq)}`, "aria-label": `Tokens of ${this.map.seqName(this.map.seq)}` });
    put(this.title, { x, y: y + 13 * unit });
    const hidden = first ? `, from token ${first}` : "";
    putText(this.title, `${this.map.letter(this.map.seq)} in reading order${hidden}`);
    this.paintCells(s, cells, top);
    this.paintBrackets(state.layout.block_size, cells, top);
    this.paintFlags(s, cells, x, top);
    this.keepLines = Math.max(lines, this.reservedLines(s, width));
    return 20 * unit + this.keepLines * this.lineH;
  }

  cellWidth(text) {
    return Math.min(Math.max(this.map.ruler.width(text) + 12 * this.map.unit, 24 * this.map.unit), 130 * this.map.unit);
  }

  // Cells left to right in lines; when they are too many, the last ones and the hot one's neighbourhood.
  flow(s, x, width) {
    const maxLines = this.map.narrow ? 4 : 3;
    const place = (first) => {
      const cells = [];
      let cx = x;
      let line = 0;
      for (let pos = first; pos < s.tokens.length; pos++) {
        const w = this.cellWidth(this.map.tokenText(s.tokens[pos]));
        if (cx + w > x + width && cx > x) {
          cx = x;
          line += 1;
        }
        cells.push({ pos, token: s.tokens[pos], x: cx, line, w });
        cx += w + 3 * this.map.unit;
      }
      return { first, cells, lines: line + 1 };
    };
    let first = Math.max(0, s.tokens.length - 120);
    let flowed = place(first);
    while (flowed.lines > maxLines) {
      const cut = flowed.cells.findIndex((c) => c.line === flowed.lines - maxLines);
      first = flowed.cells[cut].pos;
      flowed = place(first);
    }
    return flowed;
  }

  // Lines to keep free for the longest this sequence gets, so that the picture below holds still.
  reservedLines(s, width) {
    const longest = this.map.store.longest[this.map.seq]?.tokens ?? 0;
    const perToken = s.tokens.length ? s.tokens.reduce((sum, t) => sum + this.cellWidth(this.map.tokenText(t)) + 3, 0) / s.tokens.length : 40;
    return Math.min(this.map.narrow ? 4 : 3, Math.max(1, Math.ceil((longest * perToken) / width)));
  }

  paintCells(s, cells, top) {
    const unit = this.map.unit;
    this.byPos.clear();
    this.cells.use(cells.length).forEach((node, i) => {
      if (i >= cells.length) return;
      const c = cells[i];
      const written = c.pos < s.num_computed;
      const prompt = c.pos < s.num_prompt;
      put(node.g, {
        transform: `translate(${f1(c.x)} ${f1(top + c.line * this.lineH + 16 * unit)})`, "data-seq": this.map.seq, "data-pos": c.pos,
        class: `tok ${written ? "written" : "known"} ${prompt ? "prompt" : "output"}`,
      });
      put(node.rect, { width: c.w, height: 26 * unit });
      put(node.text, { x: c.w / 2, y: 13.5 * unit });
      putText(node.text, this.map.ruler.fit(this.map.tokenText(c.token), c.w - 6));
      this.byPos.set(c.pos, node.g);
    });
  }

  // Under the tokens, the logical block each group of block_size belongs to.
  paintBrackets(blockSize, cells, top) {
    const groups = [];
    for (const c of blockSize ? cells : []) {
      const logical = Math.floor(c.pos / blockSize);
      const last = groups.at(-1);
      if (last && last.logical === logical && last.line === c.line) last.to = c.x + c.w;
      else groups.push({ logical, line: c.line, from: c.x, to: c.x + c.w });
    }
    const unit = this.map.unit;
    this.brackets.use(groups.length).forEach((node, i) => {
      if (i >= groups.length) return;
      const b = groups[i];
      const y = top + b.line * this.lineH + 44 * unit;
      put(node.line, { d: `M${f1(b.from + 1)} ${f1(y)}v3H${f1(b.to - 1)}v-3` });
      put(node.text, { x: (b.from + b.to) / 2, y: y + 12 * unit });
      const label = b.to - b.from > 60 * unit ? `block ${b.logical}` : String(b.logical);
      putText(node.text, label);
    });
  }

  paintFlags(s, cells, x, top) {
    const flags = s.num_computed === s.tokens.length
      ? [{ at: s.tokens.length, text: `${s.tokens.length} known, all written`, cls: "both" }]
      : [
          { at: s.num_computed, text: `KV written: ${s.num_computed}`, cls: "kv" },
          { at: s.tokens.length, text: `tokens known: ${s.tokens.length}`, cls: "end" },
        ];
    const unit = this.map.unit;
    const edges = flags.map((flag) => this.edge(cells, flag.at, x));
    this.flags.use(flags.length).forEach((node, i) => {
      if (i >= flags.length) return;
      const { x: fx, line } = edges[i];
      const y = top + line * this.lineH;
      put(node.g, { class: `flag ${flags[i].cls}` });
      put(node.line, { d: `M${f1(fx)} ${f1(y + 2)}V${f1(y + 45 * unit)}` });
      const width = this.map.ruler.width(flags[i].text) * 0.92;
      const clash = i === 1 && edges[0].line === line && fx - edges[0].x < width + 8;
      const anchorEnd = i === 0 ? flags.length === 2 && edges[1].line === line && edges[1].x - fx < 150 * unit && fx - x > width : !clash && fx - x > width;
      put(node.text, { x: fx + (anchorEnd ? -4 : 4), y: y + 8 * unit, "text-anchor": anchorEnd ? "end" : "start" });
      putText(node.text, flags[i].text);
    });
  }

  // Where the boundary after `count` tokens is drawn.
  edge(cells, count, x) {
    const before = cells.find((c) => c.pos === count - 1);
    if (before) return { x: before.x + before.w + 1.5, line: before.line };
    const after = cells.find((c) => c.pos === count);
    return after ? { x: after.x - 1.5, line: after.line } : { x: x - 1, line: 0 };
  }
}
