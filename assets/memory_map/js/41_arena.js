// Contiguous memory: reserved runs, what is written in them, and the free gaps between.

class Arena {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "arena" }, parent);
    this.title = svgEl("text", { class: "heading" }, this.g);
    this.body = svgEl("g", {}, this.g);
    const layer = () => svgEl("g", {}, this.body); // one above the other, whichever of their parts is made first
    this.runs = new Pool(layer(), (p) => ({ g: svgEl("rect", { rx: 3 }, p) }));
    this.ticks = new Pool(layer(), (p) => ({ g: svgEl("path", { class: "tick" }, p) }));
    this.words = new Pool(layer(), (p) => ({ g: svgEl("text", { class: "piece" }, p) }));
    this.notes = new Pool(layer(), (p) => ({ g: svgEl("text", { class: "note" }, p) }));
    this.hits = new Pool(layer(), (p) => ({ g: svgEl("rect", { class: "hit", role: "button", tabindex: -1 }, p) }));
    this.roving = new Roving();
  }

  get columns() {
    return this.plan.cols;
  }

  place(x, y, numSlots, options) {
    const unit = options.unit;
    put(this.g, { display: numSlots ? null : "none" });
    if (!numSlots) return 0;
    this.plan = planArena(numSlots, options.width, options.maxHeight, unit, options.wordWidth);
    this.origin = { x, y: y + 20 * unit };
    put(this.body, { transform: `translate(${f1(x)} ${f1(this.origin.y)})` });
    put(this.title, { x, y: y + 13 * unit });
    const title = ngettext("one contiguous region of {n} slot", "one contiguous region of {n} slots", numSlots);
    putWord(this.title, title, options.width, this.map.picture.ruler);
    return 20 * unit + arenaHeight(this.plan) + 6 * unit;
  }

  paint(state) {
    const pieces = this.pieces(state);
    this.paintRuns(pieces);
    this.paintNotes(pieces);
    this.paintWords(state);
    this.paintTicks(state.layout.num_slots);
    this.paintHits(state);
  }

  // Memory from left to right: written, reserved, free.
  pieces(state) {
    const pieces = [];
    let next = 0;
    const gap = (end) => end > next && pieces.push({ kind: "gap", start: next, count: end - next, seq: -1 });
    for (const r of state.regions) {
      gap(r.start);
      const rest = r.num_slots - r.num_written;
      if (r.num_written) pieces.push({ kind: "written", start: r.start, count: r.num_written, seq: r.seq, region: r });
      if (rest) pieces.push({ kind: "reserved", start: r.start + r.num_written, count: rest, seq: r.seq, region: r });
      next = r.start + r.num_slots;
    }
    gap(state.layout.num_slots);
    return pieces;
  }

  paintRuns(pieces) {
    const rects = [];
    for (const piece of pieces) {
      for (const run of arenaRuns(this.plan, piece.start, piece.count)) {
        rects.push({ piece, run, fill: null, cls: `run ${piece.kind}` });
        if (piece.kind === "reserved") rects.push({ piece, run, fill: `url(#${this.map.uid}-reserved)`, cls: "run over" });
      }
    }
    this.runs.use(rects.length).forEach(({ g }, i) => {
      if (i >= rects.length) return;
      const { piece, run, fill, cls } = rects[i];
      put(g, {
        x: run.x + 0.5, y: run.y, width: run.w - 1, height: run.h, class: cls, fill,
        style: piece.seq >= 0 ? `--o:${this.map.colour(piece.seq)}` : null,
      });
    });
  }

  // Beside each region its owner and size, beside each gap its length: above the slots, or inside them.
  paintNotes(pieces) {
    const notes = pieces.filter((piece) => this.carriesNote(piece)).map((piece) => this.note(piece));
    this.notes.use(notes.length).forEach(({ g }, i) => {
      if (i >= notes.length) return;
      put(g, { x: notes[i].x, y: notes[i].y, class: notes[i].cls });
      putText(g, notes[i].text);
    });
  }

  // One note a region: on its first piece above the slots, on its emptier piece inside them.
  carriesNote({ kind, region }) {
    const hasBoth = region && region.num_written > 0 && region.num_written < region.num_slots;
    return !hasBoth || kind === (this.plan.text ? "written" : "reserved");
  }

  note({ kind, start, count, seq, region }) {
    const inside = !this.plan.text;
    const [run] = arenaRuns(this.plan, start, count);
    const [whole] = region && !inside ? arenaRuns(this.plan, region.start, region.num_slots) : [run];
    const letter = region ? this.map.letter(seq) : "";
    const [n, size] = [region?.num_written ?? count, region?.num_slots ?? 0].map(inThousands);
    const texts = region
      ? [_("{letter}: {n} of {size} used", { letter, n, size }), `${letter} ${n}/${size}`, letter]
      : [_("free {n}", { n }), n];
    const y = inside ? run.y + run.h / 2 + 4 * this.map.picture.unit : run.y - 4 * this.map.picture.unit;
    return {
      x: run.x + (inside ? 5 : 1), y, cls: `note ${kind}${inside ? " inside" : ""}`,
      text: texts.find((t) => this.map.picture.ruler.width(t) <= whole.w - 6) ?? "",
    };
  }

  paintWords(state) {
    const words = [];
    if (this.plan.text) {
      state.arena.forEach((content, slot) => {
        if (!content) return;
        const [run] = arenaRuns(this.plan, slot, 1);
        words.push({ content, run, live: isWritten(state, slot) });
      });
    }
    this.words.use(words.length).forEach(({ g }, i) => {
      if (i >= words.length) return;
      const { content, run, live } = words[i];
      put(g, { x: run.x + run.w / 2, y: run.y + run.h / 2 + 0.5, class: `piece ${live ? "live" : "stale"}` });
      putWord(g, this.map.tokenText(content.token), run.w - 5, this.map.picture.ruler);
    });
  }

  paintTicks(numSlots) {
    const rows = this.plan.w >= 9 ? Math.ceil(numSlots / this.plan.cols) : 0;
    this.ticks.use(rows).forEach(({ g }, row) => {
      if (row >= rows) return;
      const count = Math.min(this.plan.cols, numSlots - row * this.plan.cols);
      const y = row * (this.plan.h + this.plan.band) + this.plan.band;
      let d = "";
      for (let i = 1; i < count; i++) d += `M${f1(i * this.plan.w)} ${f1(y)}v${f1(this.plan.h)}`;
      put(g, { d });
    });
  }

  // Pointer targets: one a slot while slots are few, one a run otherwise.
  paintHits(state) {
    const few = this.plan.text;
    const targets = few ? Array.from({ length: state.layout.num_slots }, (_, slot) => slot) : [];
    this.hits.use(targets.length).forEach(({ g }, i) => {
      if (i >= targets.length) return;
      const [run] = arenaRuns(this.plan, i, 1);
      put(g, { x: run.x + 0.5, y: run.y, width: run.w - 1, height: run.h, "data-kind": "arena", "data-off": i, rx: 3, "aria-label": this.describe(state, i) });
    });
    this.roving.refresh(this.hits.nodes.slice(0, targets.length).map((node) => node.g));
  }

  describe(state, slot) {
    const content = state.arena[slot];
    const region = state.regions.find((r) => slot >= r.start && slot < r.start + r.num_slots);
    const facts = { slot, name: region?.request_id, word: content ? this.map.tokenText(content.token) : "" };
    if (!region) return content ? _("slot {slot}: free, old content: {word}", facts) : _("slot {slot}: free", facts);
    if (!isWritten(state, slot)) return _("slot {slot}: {name}, reserved, not used", facts);
    return content ? _("slot {slot}: {name}, used: {word}", facts) : _("slot {slot}: {name}, used", facts);
  }

  slotNode(slot) {
    return this.plan?.text ? this.hits.nodes[slot]?.g : undefined;
  }

  boxOf(start, count) {
    const [run] = arenaRuns(this.plan, start, count);
    return { x: this.origin.x + run.x, y: this.origin.y + run.y, w: run.w, h: run.h };
  }
}

function isWritten(state, slot) {
  return state.regions.some((r) => slot >= r.start && slot < r.start + r.num_written);
}
