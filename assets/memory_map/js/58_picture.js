// The picture: token strip, block tables, threads and memory, laid out for the width there is.

const BASE_FONT = 16; // sizes in the drawing are for this font size and grow with the page's
const PIECE_FONT = 13.5;
const NARROW = 560;
const NARROW_TABLES = 100;

class Picture {
  constructor(map, parent) {
    this.map = map;
    this.ruler = new TextRuler();
    this.wording = 0; // counts layouts: what was drawn for an older one is drawn again
    this.svg = svgEl("svg", { class: "picture", role: "group", "aria-label": _("Memory map") }, parent);
    addPatterns(this.svg, map.uid);
    this.strip = new TokenStrip(map, this.svg);
    this.threads = new Threads(map, this.svg);
    this.tables = new Tables(map, this.svg);
    this.grid = new BlockGrid(map, this.svg, "block");
    this.cpuGrid = new BlockGrid(map, this.svg, "cpu");
    this.arena = new Arena(map, this.svg);
    this.motion = new Motion(map, this.svg);
  }

  get isMeasured() {
    return this.unit !== undefined;
  }

  // Take the measures of the page: width, font, how wide words are. room: pixels that all of the picture has in height.
  // gridHeight: fewer of them for the blocks, null for none fewer.
  measure(width, style, room, gridHeight) {
    this.width = width;
    this.narrow = width < NARROW;
    this.unit = parseFloat(style.fontSize) / BASE_FONT;
    this.room = room;
    this.gridHeight = gridHeight === null ? Infinity : gridHeight * this.unit;
    this.tablesHigh = 0;
    this.wording += 1;
    put(this.svg, { style: `--u:${this.unit}px` });
    this.ruler.setFont(PIECE_FONT * this.unit, style.fontFamily);
    this.wordWidth = this.usualWordWidth();
  }

  // Room for most words: slots are this wide, longer words are shortened. In steps, so that a run that brings new
  // words seldom changes it.
  usualWordWidth() {
    const { tokens, timesUsed } = this.map.store;
    const words = tokens.map(([, text], i) => ({ width: this.ruler.width(text), times: timesUsed[i] ?? 0 }));
    words.sort((a, b) => a.width - b.width);
    let left = 0.95 * words.reduce((sum, w) => sum + w.times, 0);
    const usual = words.find((w) => (left -= w.times) <= 0)?.width ?? 0;
    const step = 6 * this.unit;
    return Math.min(Math.max(Math.ceil((usual * 0.9 + 9 * this.unit) / step) * step, 24 * this.unit), 60 * this.unit);
  }

  paint(state) {
    const bottom = state.layout.num_blocks ? this.placePages(state) : this.placeArena(state);
    if (!state.layout.num_blocks) put(this.tables.g, { display: "none" });
    put(this.svg, { width: this.width, height: bottom, viewBox: `0 0 ${this.width} ${f1(bottom)}` });
  }

  // Paged memory: tables beside the blocks, or above them on a narrow page.
  placePages(state) {
    const { unit, width, narrow } = this;
    const { num_blocks, num_cpu_blocks, block_size } = state.layout;
    const unknownPlacement = hasUnknownPlacement(this.map); // no tables to draw, and no threads from them
    const hasTables = this.map.shows("tables") && !unknownPlacement;
    const tableWidth = !hasTables ? 0 : narrow ? width : 132 * unit;
    const bus = { x: tableWidth, width: narrow || !hasTables ? 0 : 56 * unit };
    const left = narrow ? 0 : tableWidth + bus.width;
    const top = this.strip.place(state, 2, 0, width - 4);
    const tables = top + this.placeTables(state, top, tableWidth);
    const num_swap = this.map.store.usesSwap ? num_cpu_blocks : 0;
    let bottom = narrow ? tables : top;
    const room = this.room - bottom - 26 * unit * (num_swap ? 2 : 1);
    const options = (count) => this.options(width - left - 2, (room * count) / (num_blocks + num_swap));
    bottom += this.grid.place(left, bottom, num_blocks, block_size, options(num_blocks));
    bottom += this.cpuGrid.place(left, bottom + 6 * unit, num_swap, block_size, options(num_swap));
    this.arena.place(0, 0, 0, options(0));
    this.paintPages(state, bus);
    return Math.ceil(Math.max(bottom, tables) + 4);
  }

  placeTables(state, top, width) {
    put(this.tables.g, { display: width ? null : "none" });
    if (!width) return this.tables.clear();
    const room = this.narrow ? NARROW_TABLES * this.unit : this.room - top;
    const now = this.tables.place(state, 2, top, width - 4, room);
    this.tablesHigh = Math.max(this.tablesHigh || this.tables.tallest(), now);
    return this.tablesHigh;
  }

  paintPages(state, bus) {
    const n = this.grid.paint(state, state.blocks);
    if (hasUnknownPlacement(this.map)) this.grid.setTitle(_("stored blocks (physical place unknown): {n}", { n: n.cached }));
    else this.grid.setTitle(_("physical memory: {used} used, {cached} cached, {free} free", n));
    if (this.map.store.usesSwap) {
      const swap = this.cpuGrid.paint(state, state.cpu);
      this.cpuGrid.setTitle(_("CPU swap pool: {used} used, {free} free", swap));
    }
    this.threads.paint(this.tables.anchors, this.grid, bus);
  }

  placeArena(state) {
    const top = this.strip.place(state, 2, 0, this.width - 4);
    const options = this.options(this.width - 2, this.room - top - 30 * this.unit);
    this.grid.place(0, 0, 0, 0, options);
    this.cpuGrid.place(0, 0, 0, 0, options);
    this.threads.paint([], this.grid, { x: 0, width: 0 });
    const height = this.arena.place(0, top, state.layout.num_slots, options);
    if (height) this.arena.paint(state);
    return Math.ceil(top + height + 4);
  }

  options(width, room) {
    const usual = Math.min(room, this.gridHeight);
    const most = Math.min(room, this.gridHeight * TEXT_MAY_EXCEED);
    return { width, maxHeight: usual, mostForText: most, unit: this.unit, wordWidth: this.wordWidth };
  }

  // The part of the picture that a node belongs to.
  partOf(node) {
    return [this.strip, this.tables, this.grid, this.cpuGrid, this.arena].find((part) => part.g.contains(node));
  }

  // Every node that stands for one of the spots of `resolveTarget`.
  nodesOf(spots) {
    const rows = spots.rows.map(([seq, logical]) => `${seq}:${logical}`);
    const nodes = [
      ...spots.blocks.map((id) => this.grid.cards[id]?.g),
      ...spots.cpu.map((id) => this.cpuGrid.cards[id]?.g),
      ...spots.slots.map(([block, off]) => this.grid.cards[block]?.slots?.[off]?.rect),
      ...rows.map((key) => this.tables.byKey.get(key)),
      ...rows.map((key) => this.threads.byKey.get(key)),
      ...spots.tokens.filter(([seq]) => seq === this.map.seq).map(([, pos]) => this.strip.byPos.get(pos)),
      ...spots.arena.map((slot) => this.arena.slotNode(slot)),
    ];
    return nodes.filter(Boolean);
  }

  // What is drawn of a physical slot, where slots are drawn.
  slotParts(slot) {
    const { block_size, num_blocks } = this.map.state.layout;
    return num_blocks ? this.grid.cards[Math.floor(slot / block_size)]?.slots?.[slot % block_size] : undefined;
  }

  rowBox(seqId, logical) {
    return this.tables.anchors?.get(`${this.map.store.seqIndex(seqId)}:${logical}`)?.box;
  }
}
