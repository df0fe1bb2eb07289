// The chosen sequence in reading order, with its two cursors: tokens known, and keys and values written.

class TokenStrip {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "strip", role: "group" }, parent);
    this.title = svgEl("text", { class: "heading" }, this.g);
    this.cells = new Pool(this.g, (p) => {
      const g = svgEl("g", { class: "tok", "data-kind": "token", role: "button", tabindex: -1 }, p);
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
    this.roving = new Roving();
    this.columns = 1;
  }

  place(state, x, y, width) {
    const s = this.map.seq === null || !this.map.shows("tokens") ? undefined : state.seqs[this.map.seq];
    put(this.g, { display: s ? null : "none" });
    if (!s) return 0;
    const unit = this.map.picture.unit;
    this.hasCursors = this.map.shows("cursors");
    this.cellY = (this.hasCursors ? 16 : 4) * unit; // above the tokens, the cursors' labels
    this.lineH = this.cellY + (state.layout.block_size ? 46 : 30) * unit; // under them, the blocks they belong to
    const { first, cells, lines } = this.flow(s, x, width);
    const top = y + 20 * unit;
    put(this.g, { style: `--o:${this.map.colour(this.map.seq)}`, "aria-label": _("Tokens of {name}", { name: this.map.seqName(this.map.seq) }) });
    put(this.title, { x, y: y + 13 * unit });
    putWord(this.title, this.heading(first), width, this.map.picture.ruler);
    this.paintCells(s, cells, top);
    this.paintBrackets(state.layout.block_size, cells, top);
    this.paintFlags(s, cells, x, top, width);
    this.keepLines = Math.max(lines, this.reservedLines(width));
    return 30 * unit + this.keepLines * this.lineH;
  }

  heading(first) {
    const letter = this.map.letter(this.map.seq);
    return first ? _("{letter} in reading order, from token {first}", { letter, first }) : _("{letter} in reading order", { letter });
  }

  cellWidth(text) {
    return Math.min(Math.max(this.map.picture.ruler.width(text) + 12 * this.map.picture.unit, 24 * this.map.picture.unit), 130 * this.map.picture.unit);
  }

  // Cells left to right in lines; when they are too many, the last ones and the hot one's neighbourhood.
  flow(s, x, width) {
    const maxLines = this.mostLines();
    const place = (first) => {
      const cells = [];
      let cx = x;
      let line = 0;
      for (let pos = first; pos < s.num_tokens; pos++) {
        const w = this.cellWidth(this.map.tokenText(s.tokens[pos]));
        if (cx + w > x + width && cx > x) {
          cx = x;
          line += 1;
        }
        cells.push({ pos, token: s.tokens[pos], x: cx, line, w });
        cx += w + 3 * this.map.picture.unit;
      }
      return { first, cells, lines: line + 1 };
    };
    let first = Math.max(0, s.num_tokens - 120);
    let flowed = place(first);
    while (flowed.lines > maxLines) {
      const cut = flowed.cells.findIndex((c) => c.line === flowed.lines - maxLines);
      first = flowed.cells[cut].pos;
      flowed = place(first);
    }
    return flowed;
  }

  // One where a narrow picture has block tables, too.
  mostLines() {
    const { narrow, room, unit } = this.map.picture;
    return narrow && this.map.shows("tables") && room < 530 * unit ? 1 : 2;
  }

  // Lines to keep free for the longest that any sequence gets, so that the picture below holds still.
  reservedLines(width) {
    const { tokens, timesUsed, longest } = this.map.store;
    const words = tokens.map(([, text], i) => ({ w: this.cellWidth(text) + 3 * this.map.picture.unit, times: timesUsed[i] ?? 0 }));
    const uses = words.reduce((sum, { times }) => sum + times, 0);
    const each = words.reduce((sum, { w, times }) => sum + w * times, 0) / Math.max(uses, 1);
    const most = longest.reduce((max, known) => Math.max(max, known?.tokens ?? 0), 0);
    return Math.min(this.mostLines(), Math.max(1, Math.ceil((most * each) / width)));
  }

  paintCells(s, cells, top) {
    const unit = this.map.picture.unit;
    this.byPos.clear();
    this.cells.use(cells.length).forEach((node, i) => {
      if (i >= cells.length) return;
      const c = cells[i];
      const written = c.pos < s.num_computed;
      const prompt = c.pos < s.num_prompt;
      put(node.g, {
        transform: `translate(${f1(c.x)} ${f1(top + c.line * this.lineH + this.cellY)})`, "data-seq": this.map.seq, "data-pos": c.pos,
        "aria-label": this.describe(c, written),
        class: `tok ${written ? "written" : "known"} ${prompt ? "prompt" : "output"}`,
      });
      put(node.rect, { width: c.w, height: 26 * unit });
      put(node.text, { x: c.w / 2, y: 13.5 * unit });
      putWord(node.text, this.map.tokenText(c.token), c.w - 6, this.map.picture.ruler);
      this.byPos.set(c.pos, node.g);
    });
    this.columns = cells.filter((c) => c.line === 0).length;
    this.roving.refresh(this.cells.nodes.slice(0, cells.length).map((node) => node.g));
  }

  describe({ pos, token }, written) {
    const facts = { pos, text: this.map.tokenText(token) };
    return written ? _("token {pos}: {text}, keys and values written", facts) : _("token {pos}: {text}, not written yet", facts);
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
    const unit = this.map.picture.unit;
    this.brackets.use(groups.length).forEach((node, i) => {
      if (i >= groups.length) return;
      const b = groups[i];
      const y = top + b.line * this.lineH + this.cellY + 28 * unit;
      put(node.line, { d: `M${f1(b.from + 1)} ${f1(y)}v3H${f1(b.to - 1)}v-3` });
      put(node.text, { x: (b.from + b.to) / 2, y: y + 12 * unit });
      putText(node.text, this.bracketLabel(b, 60 * unit));
    });
  }

  bracketLabel({ logical, from, to }, leastRoom) {
    const label = _("block {id}", { id: logical });
    return to - from > Math.max(leastRoom, this.map.picture.ruler.width(label)) ? label : String(logical);
  }

  // The two cursors. When their labels would collide they share one.
  paintFlags(s, cells, x, top, width) {
    const marks = [
      { at: s.num_computed, cls: "kv", text: _("KV written: {n}", { n: s.num_computed }) },
      { at: s.num_tokens, cls: "end", text: _("tokens known: {n}", { n: s.num_tokens }) },
    ];
    const flags = (s.num_computed === s.num_tokens ? marks.slice(1) : marks).map((mark) => ({ ...mark, ...this.edge(cells, mark.at, x) }));
    if (flags.length === 1) Object.assign(flags[0], { cls: "kv", text: _("{n} known, all written", { n: s.num_tokens }) });
    if (!this.hasCursors) flags.length = 0;
    const [kv, end] = flags;
    const labels = end && end.line === kv.line ? this.pairLabels(kv, end, x, width) : flags.map((flag) => this.label(flag, flag.text, x, width));
    this.flags.use(flags.length).forEach((node, i) => {
      if (i >= flags.length) return;
      const y = top + flags[i].line * this.lineH;
      put(node.g, { class: `flag ${flags[i].cls}` });
      put(node.line, { d: `M${f1(flags[i].x)} ${f1(y + 14.5 * this.map.picture.unit)}V${f1(y + 45 * this.map.picture.unit)}` });
      put(node.text, { x: labels[i].x, y: y + 7 * this.map.picture.unit, "text-anchor": labels[i].anchor });
      putText(node.text, labels[i].text);
    });
  }

  // A label beside its line, on the side where there is room; shortened where neither has enough.
  label(flag, text, x, width, side = "start") {
    const { ruler } = this.map.picture;
    const right = x + width - flag.x - 4;
    const left = flag.x - 4 - x;
    const w = ruler.width(text);
    const fits = w <= right || w <= left;
    const anchor = (fits ? (side === "start" && w <= right) || w > left : right >= left) ? "start" : "end";
    return { text: fits ? text : ruler.fit(text, Math.max(right, left)), anchor, x: flag.x + (anchor === "start" ? -1 : 1) };
  }

  pairLabels(kv, end, x, width) {
    const left = this.label(kv, kv.text, x, width, "end");
    const right = this.label(end, end.text, x, width, "start");
    if (left.anchor === "end" && right.anchor === "start") return [left, right];
    if (left.anchor === "start" && right.anchor === "start" && end.x - kv.x > this.map.picture.ruler.width(kv.text) + 10) return [left, right];
    return [{ ...left, text: "" }, this.label(end, _("{written}, known: {n}", { written: kv.text, n: end.at }), x, width, right.anchor)];
  }

  // Where the boundary after `count` tokens is drawn.
  edge(cells, count, x) {
    const before = cells.find((c) => c.pos === count - 1);
    if (before) return { x: before.x + before.w + 1.5, line: before.line };
    const after = cells.find((c) => c.pos === count);
    return after ? { x: after.x - 1.5, line: after.line } : { x: x - 1, line: 0 };
  }
}
