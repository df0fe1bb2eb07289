// A pool of blocks: physical memory, or the CPU swap pool. Rebuilt when sizes change, repainted by difference.

const MAX_CHIPS = 3;
const LEAST_LETTER = 11; // pixels; below it a block is a dot in its owner's colour

class BlockGrid {
  constructor(map, parent, kind) {
    this.map = map;
    this.kind = kind; // "block" | "cpu"
    this.g = svgEl("g", { class: "grid", role: "group" }, parent);
    this.title = svgEl("text", { class: "heading" }, this.g);
    this.body = svgEl("g", {}, this.g);
    this.cards = [];
    this.roving = new Roving();
    this.planKey = "";
  }

  get columns() {
    return this.plan.cols;
  }

  // Place `count` blocks; returns the height used.
  place(x, y, count, blockSize, options) {
    const unit = options.unit;
    put(this.g, { display: count ? null : "none" });
    if (!count) return 0;
    const plan = planBlocks({ count, blockSize, ...options });
    const key = JSON.stringify([plan, count, unit]);
    if (key !== this.planKey) this.rebuild(plan, count, key);
    this.origin = { x, y: y + 20 * unit };
    this.width = options.width;
    put(this.body, { transform: `translate(${f1(this.origin.x)} ${f1(this.origin.y)})` });
    put(this.title, { x, y: y + 13 * unit });
    return 20 * unit + plan.height;
  }

  setTitle(text) {
    putWord(this.title, text, this.width, this.map.picture.ruler);
    put(this.g, { "aria-label": text });
  }

  rebuild(plan, count, key) {
    this.plan = plan;
    this.planKey = key;
    this.count = count;
    this.body.replaceChildren();
    this.cards = Array.from({ length: count }, (_, id) => this.makeCard(id));
    this.roving.refresh(this.cards.map((card) => card.g));
  }

  makeCard(id) {
    const box = blockBox(this.plan, id);
    const g = svgEl("g", {
      class: `blk ${this.plan.detail}`, "data-kind": this.kind, "data-block": id, role: "button", tabindex: -1,
      transform: `translate(${f1(box.x)} ${f1(box.y)})`,
    }, this.body);
    const radius = Math.min(8, box.w / 6);
    const card = { g, id, box, rect: svgEl("rect", { class: "card", width: box.w, height: box.h, rx: radius }, g) };
    card.hatch = svgEl("rect", { class: "hatch", width: box.w, height: box.h, rx: radius, display: "none" }, g);
    if (this.plan.detail === "cells") this.makeCellParts(card);
    else this.makeCardParts(card);
    return card;
  }

  // A small block: how full it is, whose it is, and its id where there is room.
  makeCellParts(card) {
    const { w, h } = card.box;
    if (w < 12) return;
    card.fill = svgEl("rect", { class: "fill", x: 1, width: w - 2, rx: Math.min(6, w / 7) }, card.g);
    if (w >= 15) card.letter = svgEl("text", { class: "letter", x: w / 2, y: h / 2 }, card.g);
    if (w < 30 * this.map.picture.unit) return;
    put(card.letter, { y: h * 0.6 });
    putText(svgEl("text", { class: "cell-id", x: 4, y: h * 0.24 }, card.g), String(card.id));
  }

  makeCardParts(card) {
    const { pad, header, detail, blockSize } = this.plan;
    const { w } = card.box;
    const unit = this.map.picture.unit;
    const small = (detail === "text" ? 12.5 : 11) * unit;
    card.bars = svgEl("g", {}, card.g);
    card.name = svgEl("text", { class: "name", x: pad + 1, y: header / 2 + 2, "font-size": small }, card.g);
    card.chips = new Pool(card.g, makeChip);
    card.ref = svgEl("text", { class: "ref", x: w - pad - 1, y: header / 2 + 2, "font-size": small }, card.g);
    card.slots = Array.from({ length: blockSize }, (_, off) => this.makeSlot(card, off));
  }

  makeSlot(card, off) {
    const s = slotBox(this.plan, off);
    const data = { "data-kind": "slot", "data-block": card.id, "data-off": off };
    const rect = svgEl("rect", { class: "slot", x: s.x, y: s.y, width: s.w, height: s.h, rx: Math.min(4, s.h / 4), ...data }, card.g);
    if (this.plan.detail !== "text") return { rect };
    const text = svgEl("text", { class: "piece", x: s.x + s.w / 2, y: s.y + s.h / 2 + 0.5, ...data }, card.g);
    return { rect, text };
  }

  paint(state, blocks) {
    const used = { used: 0, cached: 0, free: 0 };
    for (const card of this.cards) {
      const block = blocks[card.id];
      const live = this.kind === "cpu" ? state.layout.block_size * Math.sign(block.owners.length) : numLiveSlots(state, block);
      const next = state.nextFree[0] === card.id && this.kind === "block";
      used[blockStatus(block)] += 1;
      if (card.block === block && card.live === live && card.next === next && card.chosen === this.map.seq && card.wording === this.map.picture.wording) continue;
      Object.assign(card, { block, live, next, chosen: this.map.seq, wording: this.map.picture.wording });
      this.paintCard(card, state);
    }
    return used;
  }

  paintCard(card, state) {
    const { block } = card;
    const status = blockStatus(block);
    const owners = block.owners;
    const lead = owners.find(([seq]) => seq === this.map.seq) ?? owners[0];
    const stale = status === "free" && block.slots.some(Boolean);
    const pattern = status === "cached" ? "cached" : stale ? "stale" : null;
    put(card.g, {
      class: `blk ${this.plan.detail} ${status}${owners.length > 1 ? " shared" : ""}${card.next ? " next" : ""}`,
      style: lead ? `--o:${this.map.colour(lead[0])}` : null,
      "aria-label": this.describe(card, status),
    });
    put(card.hatch, { display: pattern ? null : "none", fill: pattern && `url(#${this.map.uid}-${pattern})` });
    if (card.fill) this.paintFill(card, state.layout.block_size);
    if (card.letter) this.paintLetter(card, lead ? this.map.letter(lead[0]) + (owners.length > 1 ? "+" : "") : "");
    if (card.name) this.paintHeader(card, status, lead);
    if (card.slots) this.paintSlots(card, status);
  }

  paintFill(card, blockSize) {
    const height = (card.box.h - 2) * (card.live / blockSize);
    put(card.fill, { y: card.box.h - 1 - height, height, display: height > 0 ? null : "none" });
  }

  // The owner's letter as large as the cell allows, and none when that is too small to read.
  paintLetter(card, text) {
    const size = Math.min(15 * this.map.picture.unit, card.box.w * 0.55, (card.box.w - 3) / (0.62 * Math.max(text.length, 1)));
    put(card.letter, { style: `font-size:${f1(size)}px` });
    putText(card.letter, size < LEAST_LETTER ? "" : text);
  }

  // Name, state and holders. Where the holders would have no room, a count of one is left out, then the word "block".
  paintHeader(card, status, lead) {
    const { owners } = card.block;
    const { pad, header, detail } = this.plan;
    const unit = this.map.picture.unit;
    const text = detail === "text";
    if (hasUnknownPlacement(this.map)) {
      putText(card.name, text ? storedName(card.id) : String(card.id + 1));
      return;
    }
    const side = (text ? 16 : 13) * unit;
    const name = this.nameOf(card, text);
    let words = this.headerWords(card, status, lead, side, name, text);
    if (owners.length === 1 && !words.labels.length) words = this.headerWords(card, status, lead, side, name, false);
    if (owners.length && !words.labels.length) words = this.headerWords(card, status, lead, side, String(card.id), text);
    putText(card.name, words.name);
    putText(card.ref, words.state);
    let right = card.box.w - pad - words.taken;
    card.chips.use(words.labels.length).forEach((chip, i) => {
      const label = words.labels[words.labels.length - 1 - i];
      if (!label) return;
      const width = paintChip(chip, label, side);
      right -= width;
      put(chip.g, { transform: `translate(${f1(right)} ${f1(header / 2 + 2 - side / 2)})` });
      right -= 2 * unit;
    });
    this.paintBars(card, owners);
  }

  nameOf({ id, box }, text) {
    const name = this.kind === "cpu" ? _("cpu {id}", { id }) : text ? _("block {id}", { id }) : String(id);
    return this.map.picture.ruler.width(name) <= box.w - 2 * this.plan.pad ? name : String(id);
  }

  // What fits in a header beside the name: the state, and chips in the pixels that it leaves. isRoomy: ones are counted.
  headerWords(card, status, lead, side, name, isRoomy) {
    const { ruler, unit } = this.map.picture;
    const text = this.plan.detail === "text";
    const room = card.box.w - 2 * this.plan.pad - ruler.width(name) - 8 * unit;
    const state = status === "used" ? this.countText(card.block, isRoomy) : this.stateText(status, room);
    const taken = state ? ruler.width(state) + 8 * unit : 0;
    const labels = this.chipLabels(card.block.owners, lead, room - taken, side + 2 * unit);
    return { name, labels, taken, state: card.next && text ? this.nextText(status, room) : state };
  }

  nextText(status, room) {
    const long = _("{status}, next", { status: statusWord(status) });
    return this.map.picture.ruler.width(long) < room ? long : _("next");
  }

  // The state in a word, or as the legend marks it where the word would cover the block's number.
  stateText(status, room) {
    const word = statusWord(status);
    if (this.map.picture.ruler.width(word) <= room) return word;
    return status === "cached" ? "#" : "";
  }

  // As many holders as there is room for beside the block's number, and how many more there are. The top edge shows
  // them all.
  chipLabels(owners, lead, room, side) {
    const chip = ([seq]) => ({ text: this.map.letter(seq), colour: this.map.colour(seq) });
    const width = (labels) => labels.reduce((sum, { text }) => sum + chipWidth(text, side), 0);
    for (let count = Math.min(owners.length, MAX_CHIPS); count > 0; count--) {
      const labels = owners.slice(0, count).map(chip);
      if (count < owners.length) labels[count - 1] = { text: `+${owners.length - count + 1}`, colour: null };
      if (count === 1 && owners.length > 1) labels[0] = chip(lead);
      if (width(labels) <= room) return labels;
    }
    return [];
  }

  // ref_cnt of a used block, with a mark when its content can be found by others.
  countText(block, isRoomy) {
    const count = block.owners.length > 1 || isRoomy ? `×${block.owners.length}` : "";
    return [block.cached && this.plan.detail === "text" ? "#" : "", count].filter(Boolean).join(" ");
  }

  // The card's top edge, divided among its holders.
  paintBars(card, owners) {
    const share = card.box.w / Math.max(owners.length, 1);
    card.barPool ??= new Pool(card.bars, (parent) => ({ g: svgEl("rect", { class: "edge", height: 4 }, parent) }));
    card.barPool.use(owners.length).forEach((bar, i) => {
      if (i < owners.length) put(bar.g, { x: i * share, width: share, style: `--o:${this.map.colour(owners[i][0])}` });
    });
  }

  paintSlots(card, status) {
    const { plan, map } = this;
    card.slots.forEach((slot, off) => {
      const content = card.block.slots[off];
      const look = !content ? "empty" : status === "cached" ? "kept" : off < card.live ? "live" : "stale";
      put(slot.rect, { class: `slot ${look}` });
      if (!slot.text) return;
      put(slot.text, { class: `piece ${look}` });
      putWord(slot.text, content ? map.tokenText(content.token) : "", plan.slotW - 5, map.picture.ruler);
    });
  }

  describe(card, status) {
    const { block, id, live } = card;
    const where = this.kind === "cpu" ? _("CPU block {id}", { id }) : _("block {id}", { id });
    const holders = block.owners.map(([seq, logical]) => _("logical block {logical} of {name}", { logical, name: this.map.seqName(seq) }));
    const words = block.slots.slice(0, 32).filter(Boolean).map((c) => this.map.tokenText(c.token)).join(" ");
    if (hasUnknownPlacement(this.map)) return _("{name}, place and holders unknown: {words}", { name: storedName(id), words });
    if (status === "used") {
      const all = holders.reduce((some, one) => _("{some} and {one}", { some, one }));
      const facts = { where, holders: all, count: holders.length, live, size: block.slots.length, words };
      return _("{where}: {holders}, ref_cnt {count}, slots written: {live} of {size}: {words}", facts);
    }
    const facts = { where, status: card.next ? _("{status}, the next to be allocated", { status: statusWord(status) }) : statusWord(status), words };
    if (!words) return _("{where}: {status}", facts);
    if (status === "cached") return _("{where}: {status}, still cached: {words}", facts);
    return _("{where}: {status}, old content: {words}", facts);
  }

  // In picture coordinates, for threads and moves.
  boxOf(id) {
    const card = this.cards[id];
    return card && { x: this.origin.x + card.box.x, y: this.origin.y + card.box.y, w: card.box.w, h: card.box.h };
  }
}

function makeChip(parent) {
  const g = svgEl("g", { class: "chip" }, parent);
  return { g, rect: svgEl("rect", { rx: 4 }, g), text: svgEl("text", {}, g) };
}

function chipWidth(text, side) {
  return Math.max(side, 6 + text.length * side * 0.55);
}

// Paint a letter chip and return its width.
function paintChip(chip, { text, colour }, side) {
  const width = chipWidth(text, side);
  put(chip.g, { style: colour ? `--o:${colour}` : null, class: `chip${colour ? "" : " more"}` });
  put(chip.rect, { width, height: side });
  put(chip.text, { x: width / 2, y: side / 2 + 0.5, "font-size": side * 0.76 });
  putText(chip.text, text);
  return width;
}
