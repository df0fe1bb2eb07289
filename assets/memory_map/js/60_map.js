// The memory map: one instance a mounted component. It owns the frames, the position and the choice of sequence,
// and asks the parts to paint.

let nextUid = 0;
const ZOOMS = [0.7, 0.85, 1, 1.2, 1.45, 1.75];

class MemoryMap {
  constructor(root) {
    this.root = root;
    this.uid = `mm${nextUid++}`;
    this.store = new FrameStore();
    this.index = 0;
    this.zoom = 2;
    this.seq = null;
    this.chosenId = null;
    this.sent = 0;
    this.ruler = new TextRuler();
    this.build();
    this.watchSize();
  }

  // -- structure --

  build() {
    this.root.tabIndex = -1;
    this.root.setAttribute("role", "group");
    this.controls = new Controls(this, this.root);
    this.exports = new Exports(this, this.controls.bar);
    this.caption = new Caption(this.root);
    this.figures = new Figures(this.root);
    this.lanes = new Lanes(this, this.root);
    this.stage = htmlEl("div", "stage", this.root); // hears the focus: an SVG that did would be a tab stop itself
    this.svg = svgEl("svg", { class: "picture", role: "group", "aria-label": "Memory map" }, this.stage);
    addPatterns(this.svg, this.uid);
    this.strip = new TokenStrip(this, this.svg);
    this.threads = new Threads(this, this.svg);
    this.tables = new Tables(this, this.svg);
    this.grid = new BlockGrid(this, this.svg, "block");
    this.cpuGrid = new BlockGrid(this, this.svg, "cpu");
    this.arena = new Arena(this, this.svg);
    this.motion = new Motion(this, this.svg);
    this.link = new Link(this);
    this.live = new LiveFrames(this);
    this.readout = htmlEl("div", "readout", this.root);
    this.legend = new Legend(this.root);
    this.twin = new Twin(this, this.root);
    this.listen();
  }

  listen() {
    const target = (e) => Link.targetOf(e.target);
    this.stage.addEventListener("pointerover", (e) => this.link.setHover(target(e)));
    this.stage.addEventListener("pointerleave", () => this.link.setHover(null));
    this.stage.addEventListener("focusin", (e) => this.link.setHover(target(e)));
    this.stage.addEventListener("focusout", () => this.link.setHover(null));
    this.stage.addEventListener("click", (e) => this.pickTarget(target(e)));
    this.root.addEventListener("keydown", (e) => this.pictureKey(e) || this.controls.key(e));
  }

  pictureKey(e) {
    const node = e.composedPath()[0].closest?.("[data-kind]");
    if (!node) return false;
    const part = [this.strip, this.tables, this.grid, this.cpuGrid, this.arena].find((p) => p.g.contains(node));
    const isMine = ["Enter", " ", "Escape"].includes(e.key) || e.key.startsWith("Arrow");
    if (!isMine) return false;
    e.preventDefault();
    if (e.key.startsWith("Arrow")) part.roving.move(node, e.key, part.columns);
    else if (e.key === "Escape") this.link.setPick(null);
    else this.pickTarget(Link.targetOf(node));
    return true;
  }

  watchSize() {
    this.observer = new ResizeObserver(() => {
      if (Math.abs(this.root.clientWidth - (this.seenWidth ?? 0)) < 1) return;
      this.relayout();
    });
    this.observer.observe(this.root);
  }

  stop() {
    this.controls.stop(false);
    clearTimeout(this.reportTimer);
    this.observer.disconnect();
    this.link.stop();
    this.live.stop();
  }

  // -- data --

  // Called at each render of the page: new frames, a new trace, or nothing new.
  update(data, setStateValue) {
    this.send = setStateValue;
    this.payload = data.payload;
    this.withControls = data.controls !== false;
    this.maxHeight = data.height ?? 520;
    this.palette = data.payload.palette;
    this.root.setAttribute("aria-label", data.payload.title || "Memory map");
    if (data.selected_seq !== this.askedSeq) {
      this.askedSeq = data.selected_seq;
      this.chosenId = data.selected_seq ?? this.chosenId;
    }
    this.takeFrames(data.payload);
    this.live.follow(data.live ?? null);
    this.takePosition(data.position);
    this.relayout();
  }

  takeFrames({ trace_id, frames, from = 0 }) {
    if (this.traceId !== trace_id) this.startTrace(trace_id);
    this.appendFrames(frames, from);
  }

  // Another trace: keep the reader's place when there is one, else stand at the end.
  startTrace(traceId) {
    this.isFirst = this.traceId === undefined;
    this.traceId = traceId;
    this.store = new FrameStore();
    this.link.pick = null;
    this.painted = -1;
    this.reported = [];
    this.askedPosition = this.lastReported = null;
  }

  // A message of the live line. Painted in the next animation frame, however many arrive before it.
  takeLive(message) {
    this.takeFrames(message);
    this.liveRaf ??= requestAnimationFrame(() => {
      this.liveRaf = null;
      if (this.unit && this.wordWidth) this.paint();
      else this.relayout();
      this.motion.play(this.index === this.store.length - 1 ? this.frame.changes : []);
    });
  }

  // Add messages numbered from `from`; those already here are skipped. A map that stood at the end stays there.
  appendFrames(messages, from) {
    const isNew = this.store.length === 0;
    const follows = isNew ? this.isFirst : this.index >= this.store.length - 1;
    this.store.append(messages.slice(Math.max(0, this.store.numMessages - from)));
    const last = Math.max(this.store.length - 1, 0);
    this.index = follows ? last : Math.min(this.index, last);
    this.takeAwaited();
  }

  // A position asked from Python moves the map when it is news, not when it is the echo of our own report.
  takePosition(position) {
    if (position === null || position === undefined || position === this.askedPosition) return;
    this.askedPosition = position;
    if (this.isEcho(position)) return;
    this.controls.stop(false);
    this.awaited = Math.max(0, position);
    this.takeAwaited();
  }

  // Stand where asked, as soon as there are so many frames: a live line may still bring them.
  takeAwaited() {
    if (this.awaited === undefined || !this.store.length) return;
    this.index = this.lastReported = Math.min(this.awaited, this.store.length - 1);
    if (this.index === this.awaited) this.awaited = undefined;
  }

  // Python may answer fewer times than we report: an answer settles its report and those before it.
  isEcho(position) {
    const settled = this.reported.lastIndexOf(position);
    this.reported.splice(0, settled + 1);
    return settled >= 0;
  }

  get frame() {
    return this.store.frames[this.index];
  }

  // -- moving --

  show(index, { moves = false }) {
    const next = Math.max(0, Math.min(index, this.store.length - 1));
    this.awaited = undefined;
    if (next === this.index && this.painted === next) return;
    this.index = next;
    this.root.classList.toggle("gentle", Boolean(moves));
    this.paint();
    this.motion.play(moves ? this.frame.changes : []);
  }

  quiet(on) {
    this.caption.quiet(on);
  }

  zoomBy(by) {
    this.zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.zoom + by));
    this.relayout();
  }

  chooseSeq(seq) {
    this.chosenId = this.store.seqs[seq].seq_id;
    this.paint();
    this.report("selection", { kind: "sequence", seq_id: this.chosenId });
  }

  pickTarget(target) {
    if (!target) return false;
    this.link.setPick(target);
    if (this.link.pick) this.report("selection", this.selectionOf(target));
    else this.report("selection", null);
    return true;
  }

  selectionOf(target) {
    const spots = this.resolve(target);
    const [token] = spots.tokens;
    const size = this.state.layout.block_size;
    const seq = target.seq ?? token?.[0] ?? spots.rows[0]?.[0];
    const slot = target.kind === "arena" ? target.off : spots.slots.length ? spots.slots[0][0] * size + spots.slots[0][1] : null;
    return {
      kind: target.kind === "arena" ? "slot" : target.kind, block: target.block ?? spots.blocks[0] ?? null, slot,
      seq_id: seq === undefined || seq === null ? null : this.store.seqs[seq].seq_id, logical: spots.rows[0]?.[1] ?? null,
      token: target.kind === "block" || target.kind === "row" ? null : token?.[1] ?? null,
    };
  }

  // -- telling Python --

  report(name, value) {
    this.sent += 1;
    this.send?.(name, value && { ...value, seq: this.sent, trace_id: this.traceId });
  }

  reportSoon(delay) {
    clearTimeout(this.reportTimer);
    this.reportTimer = setTimeout(() => {
      if (this.lastReported === this.index) return;
      this.lastReported = this.index;
      this.reported.push(this.index);
      this.report("position", { index: this.index, step: this.frame.step });
    }, delay);
  }

  // -- painting --

  relayout() {
    const width = this.root.clientWidth;
    if (!width || !this.store.length) return;
    this.seenWidth = width;
    this.root.style.setProperty("--zoom", ZOOMS[this.zoom]);
    const style = getComputedStyle(this.root);
    this.unit = parseFloat(style.fontSize) / 16;
    this.narrow = width < 560;
    this.width = width;
    put(this.svg, { style: `--u:${this.unit}px` });
    this.ruler.setFont(13.5 * this.unit, style.fontFamily);
    this.wordWidth = this.usualWordWidth();
    this.tablesHigh = 0;
    this.wording = (this.wording ?? 0) + 1;
    this.paint();
  }

  // Room for most words: slots are this wide, longer words are shortened.
  usualWordWidth() {
    const words = this.store.tokens.map(([, text], i) => ({ width: this.ruler.width(text), times: this.store.timesUsed[i] ?? 0 }));
    words.sort((a, b) => a.width - b.width);
    let left = 0.95 * words.reduce((sum, w) => sum + w.times, 0);
    const usual = words.find((w) => (left -= w.times) <= 0)?.width ?? 0;
    return Math.min(Math.max(usual * 0.9 + 9 * this.unit, 22 * this.unit), 60 * this.unit);
  }

  paint() {
    if (!this.store.length || !this.unit) return;
    this.state = this.store.seek(this.index);
    this.painted = this.index;
    this.seq = this.pickSeq();
    const bottom = this.paintPicture();
    put(this.svg, { width: this.width, height: bottom, viewBox: `0 0 ${this.width} ${f1(bottom)}` });
    this.controls.paint(this.index, this.store.length, this.frame.label);
    this.caption.paint(this.frame.say);
    this.figures.paint(this.frame.figures);
    this.lanes.paint(this.state);
    this.paintWords();
    this.link.show();
  }

  paintPicture() {
    const { state, unit, width } = this;
    const withBlocks = state.layout.num_blocks > 0;
    let y = this.strip.place(state, 2, 0, width - 4);
    const tableWidth = this.narrow ? width : 132 * unit;
    const bus = { x: tableWidth, width: this.narrow ? 0 : 56 * unit };
    const left = withBlocks && !this.narrow ? tableWidth + bus.width : 0;
    const options = { width: width - left - 2, maxHeight: this.maxHeight * unit, unit, detail: "auto", wordWidth: this.wordWidth };
    if (withBlocks) {
      this.tableRoom = this.narrow ? 9 : Math.max(16, this.maxHeight / 25);
      const tablesHigh = this.tables.place(state, 2, y, tableWidth - 4);
      this.tablesHigh = Math.max(this.tablesHigh || this.tables.tallest(), tablesHigh);
      if (this.narrow) y += this.tablesHigh;
    }
    put(this.tables.g, { display: withBlocks ? null : "none" });
    let bottom = y + this.grid.place(left, y, state.layout.num_blocks, state.layout.block_size, options);
    bottom += this.cpuGrid.place(left, bottom + 6 * unit, this.store.usesSwap ? state.layout.num_cpu_blocks : 0, state.layout.block_size, options);
    bottom += this.arena.place(left, bottom, state.layout.num_slots, options);
    this.paintMemory(state, withBlocks, bus);
    this.legend.paint(state);
    return Math.ceil(Math.max(bottom, withBlocks && !this.narrow ? y + this.tablesHigh : 0) + 4);
  }

  paintMemory(state, withBlocks, bus) {
    if (withBlocks) {
      const n = this.grid.paint(state, state.blocks);
      putText(this.grid.title, `physical memory: ${n.used} used, ${n.cached} cached, ${n.free} free`);
      put(this.grid.g, { "aria-label": this.grid.title.textContent });
    }
    if (this.store.usesSwap) {
      const n = this.cpuGrid.paint(state, state.cpu);
      putText(this.cpuGrid.title, `CPU swap pool: ${n.used} used, ${n.free} free`);
      put(this.cpuGrid.g, { "aria-label": this.cpuGrid.title.textContent });
    }
    if (state.layout.num_slots) {
      putText(this.arena.title, `one stretch of ${state.layout.num_slots} slots`);
      this.arena.paint(state);
    }
    this.threads.paint(withBlocks ? this.tables.anchors : [], this.grid, bus);
  }

  paintWords() {
    if (this.state) this.twin.paint(this.state, this.frame);
  }

  // The sequence the strip and the threads are about: the chosen one, or the first alive, or the last there was.
  pickSeq() {
    const { seqs } = this.state;
    const chosen = this.store.seqs.findIndex((s) => s.seq_id === this.chosenId);
    if (chosen >= 0 && seqs[chosen]) return chosen;
    const alive = seqs.findIndex((_, i) => isLiveSeq(this.state, i));
    if (alive >= 0) return alive;
    return seqs.length ? seqs.length - 1 : null;
  }

  // -- names --

  letter(seq) {
    return this.store.seqs[seq]?.letter ?? "?";
  }

  colour(seq) {
    return this.palette[this.store.seqs[seq]?.colour ?? 0];
  }

  colourOf(id) {
    const seq = this.store.seqs.findIndex((s) => s.seq_id === id);
    return seq < 0 ? null : this.colour(seq);
  }

  seqName(seq) {
    return this.store.seqs[seq]?.seq_id ?? "?";
  }

  tokenText(token) {
    return this.store.tokens[token][1];
  }

  // -- lights --

  resolve(target) {
    return resolveTarget(this.state, target, this.seq);
  }

  resolveTokens(tokens) {
    const spots = { blocks: [], slots: [], rows: [], tokens: [], arena: [], cpu: [] };
    for (const [seqId, pos] of this.state ? tokens : []) addToken(this.state, spots, this.store.seqs.findIndex((s) => s.seq_id === seqId), pos);
    return spots;
  }

  nodesOf(spots) {
    const rows = spots.rows.map(([seq, logical]) => `${seq}:${logical}`);
    const nodes = [
      ...spots.blocks.map((id) => this.grid.cards[id]?.g),
      ...spots.cpu.map((id) => this.cpuGrid.cards[id]?.g),
      ...spots.slots.map(([block, off]) => this.grid.cards[block]?.slots?.[off]?.rect),
      ...rows.map((key) => this.tables.byKey.get(key)),
      ...rows.map((key) => this.threads.byKey.get(key)),
      ...spots.tokens.filter(([seq]) => seq === this.seq).map(([, pos]) => this.strip.byPos.get(pos)),
      ...spots.arena.map((slot) => this.arena.slotNode(slot)),
    ];
    return nodes.filter(Boolean);
  }

  rowBox(seqId, logical) {
    const seq = this.store.seqs.findIndex((s) => s.seq_id === seqId);
    return this.tables.anchors?.get(`${seq}:${logical}`)?.box;
  }

  showReadout(target, spots) {
    if (this.state) putText(this.readout, readoutText(this, this.state, target, spots));
  }

  // -- exports --

  toSvgText() {
    const background = getComputedStyle(this.root).getPropertyValue("--st-background-color").trim() || "#fff";
    return standaloneSvg(this.svg, background, [`${this.payload.title ? `${this.payload.title}: ` : ""}${this.frame.label}`, ...this.frame.say.slice(0, 3)]);
  }

  toJson() {
    const { schema, title } = this.payload;
    return { schema, title, trace_id: this.traceId, palette: this.palette, frames: this.store.frames.flatMap((f) => f.parts) };
  }
}
