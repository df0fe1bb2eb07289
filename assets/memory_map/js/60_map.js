// The memory map: one instance a mounted component. It owns the frames, the position and the choice of sequence,
// and asks the parts to paint.

let nextUid = 0;
const ALL_PARTS = ["tokens", "cursors", "tables"];
const LAST_FRAME_EVENT = "memory-map:last-frame"; // the reader has moved the picture to it (assets/browser_state/progress.js)
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
    this.reports = new Reports(this);
    this.available = new AvailableHeight(this);
    this.build();
    this.watchSize();
    mountedMaps.add(this);
  }

  // -- structure --

  build() {
    this.root.tabIndex = -1;
    this.root.setAttribute("role", "group");
    this.above = htmlEl("div", "above", this.root);
    this.controls = new Controls(this, this.above);
    this.exports = new Exports(this, this.controls.bar);
    this.caption = new Caption(this.above);
    this.figures = new Figures(this.above);
    this.fallback = htmlEl("p", "fallback", this.above);
    this.fallback.setAttribute("role", "status");
    this.fallback.hidden = true;
    this.lanes = new Lanes(this, this.above);
    this.stage = htmlEl("div", "stage", this.root); // hears the focus: an SVG that did would be a tab stop itself
    this.picture = new Picture(this, this.stage);
    this.link = new Link(this);
    this.live = new LiveFrames(this);
    this.below = htmlEl("div", "below", this.root);
    this.readout = htmlEl("div", "readout", this.below);
    this.legend = new Legend(this, this.below);
    this.more = new MoreDetail(this, this.below);
    this.embed = new Embed(this, this.below);
    this.captions = new Captions(this.root);
    this.dataTables = new DataTables(this, this.root);
    this.presenting = new Presenting(this);
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
    const isMine = ["Enter", " ", "Escape"].includes(e.key) || e.key.startsWith("Arrow");
    if (!isMine) return false;
    e.preventDefault();
    const part = this.picture.partOf(node);
    if (e.key.startsWith("Arrow")) part.roving.move(node, e.key, part.columns);
    else if (e.key === "Escape") this.link.setPick(null);
    else this.pickTarget(Link.targetOf(node));
    return true;
  }

  // Lay out anew when there is more or less room: another width, another viewport, more words around the picture.
  watchSize() {
    this.observer = new ResizeObserver(() => {
      if (Math.abs(this.root.clientWidth - (this.seenWidth ?? 0)) >= 1 || this.available.hasChanged()) this.relayout();
    });
    for (const box of [this.root, this.above, this.below, this.captions.box]) this.observer.observe(box);
    this.onResize = () => this.relayout();
    window.addEventListener("resize", this.onResize);
  }

  stop() {
    mountedMaps.delete(this);
    this.controls.stop(false);
    this.reports.stop();
    this.observer.disconnect();
    window.removeEventListener("resize", this.onResize);
    this.link.stop();
    this.live.stop();
    this.picture.motion.stop();
    this.presenting.stop();
  }

  // -- data --

  // Called at each render of the page: new frames, a new trace, or nothing new.
  update(data, setStateValue) {
    this.reports.send = setStateValue;
    this.payload = data.payload;
    this.withControls = data.controls !== false;
    this.maxHeight = data.height ?? null;
    this.share = data.share ?? 1;
    this.parts = data.parts ?? ALL_PARTS;
    this.palette = data.payload.palette;
    this.root.setAttribute("aria-label", data.payload.title || _("Memory map"));
    if (data.selected_seq !== this.askedSeq) {
      this.askedSeq = data.selected_seq;
      this.chosenId = data.selected_seq ?? this.chosenId;
    }
    this.link.followed = data.followed ? [data.followed] : [];
    const acknowledged = this.reports.acknowledge(data.acknowledged);
    this.takeFrames(data.payload);
    this.live.follow(data.live ?? null);
    this.takePosition(data.position, acknowledged);
    this.follows = data.follows ?? null;
    if (this.follows) this.follow(leaderOf(this.follows));
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
    this.reports.reset();
    this.askedPosition = null;
  }

  // A message of the live line. Painted in the next animation frame, however many arrive before it.
  takeLive(message) {
    this.takeFrames(message);
    this.liveRaf ??= requestAnimationFrame(() => {
      this.liveRaf = null;
      if (this.picture.isMeasured) this.paint();
      else this.relayout();
      this.picture.motion.play(this.index === this.store.length - 1 ? this.frame.changes : []);
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

  // A position asked from Python moves the map when it is news: not when it is the echo of the report that is answered
  // here, and not while a report is on its way, for what is asked then is older.
  takePosition(position, answered) {
    if (position === null || position === undefined || position === this.askedPosition) return;
    if (this.reports.pending) return;
    this.askedPosition = position;
    if (position === answered) return;
    this.controls.stop(false);
    this.awaited = Math.max(0, position);
    this.takeAwaited();
  }

  // Stand where asked, as soon as there are so many frames: a live line may still bring them.
  takeAwaited() {
    if (this.awaited === undefined || !this.store.length) return;
    this.index = this.reports.last = Math.min(this.awaited, this.store.length - 1);
    if (this.index === this.awaited) this.awaited = undefined;
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
    this.root.classList.toggle("gentle", Boolean(moves) && !this.picture.motion.isUnwanted);
    this.paint();
    this.picture.motion.play(moves ? this.frame.changes : []);
    moveFollowers(this, { moves });
    if (next > 0 && next === this.store.length - 1) document.dispatchEvent(new CustomEvent(LAST_FRAME_EVENT));
  }

  // Stand beside the leader's frame; other maps than the one followed say nothing to us.
  follow(leader, moves = {}) {
    if (leader && this.follows?.trace_id === leader.traceId) this.show(this.follows.positions[leader.index], moves);
  }

  // Whether a part of the picture is drawn: one that the page leaves out comes with `MoreDetail`.
  shows(part) {
    return this.more.isOn || this.parts.includes(part);
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
    this.reports.report("selection", { kind: "sequence", seq_id: this.chosenId });
  }

  pickTarget(target) {
    if (!target) return false;
    this.link.setPick(target);
    if (this.link.pick) this.reports.report("selection", selectionOf(this, target));
    else this.reports.report("selection", null);
    return true;
  }

  // -- painting --

  relayout() {
    const width = this.root.clientWidth;
    if (!width || !this.store.length) return;
    this.seenWidth = width;
    this.presenting.paint();
    this.root.style.setProperty("--zoom", ZOOMS[this.zoom]);
    this.readState();
    this.paintAround(); // what they take is what the picture has not
    const style = getComputedStyle(this.root);
    this.picture.measure(width, style, this.available.forPicture(width, style), this.maxHeight);
    this.paint();
    if (this.share < 1) relayoutFollowers(this);
  }

  paint() {
    if (!this.store.length || !this.picture.isMeasured) return;
    this.readState();
    this.picture.paint(this.state);
    this.paintAround();
    this.link.show();
  }

  readState() {
    this.state = this.store.seek(this.index);
    this.painted = this.index;
    this.seq = this.pickSeq();
  }

  // The controls and all words.
  paintAround() {
    this.controls.paint(this.index, this.store.length, this.frame.label);
    this.caption.paint(this.frame);
    this.figures.paint(this.frame.figures);
    this.captions.paint(this.frame.captions);
    this.lanes.paint(this.state);
    this.legend.paint();
    this.more.paint();
    this.embed.paint();
    this.paintWords();
  }

  paintWords() {
    if (this.state) this.dataTables.paint(this.state, this.frame);
  }

  // The sequence the strip and the threads are about: the chosen one, or the one the frame is best seen with, or the
  // first alive, or the last there was.
  pickSeq() {
    const { seqs } = this.state;
    const asked = [this.chosenId, this.frame.focus].map((id) => this.store.seqIndex(id)).find((seq) => seqs[seq]);
    if (asked !== undefined) return asked;
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
    const seq = this.store.seqIndex(id);
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
    for (const [seqId, pos] of this.state ? tokens : []) addToken(this.state, spots, this.store.seqIndex(seqId), pos);
    return spots;
  }

  showReadout(target, spots) {
    if (this.state) putText(this.readout, readoutText(this, this.state, target, spots));
  }
}
