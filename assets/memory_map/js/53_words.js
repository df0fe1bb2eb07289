// Everything in words: the frame's sentences (a live region), the sequences by lane, the reading of one spot,
// and the picture as real tables.

const LANES = [
  ["running", _("Running")], ["waiting", _("Waiting")], ["preempted", _("Preempted")], ["swapped", _("Swapped out")],
  ["refused", _("Refused")], ["finished", _("Done")],
];
const BLOCK_HEADS = [_("block"), _("state"), _("ref_cnt"), _("holders"), _("slots")];
const CHIPS_A_LANE = 24;
const TABLE_ROWS = 400;

// The one sentence of a frame, a live region, and beside it everything that happened, folded.
class Caption {
  constructor(parent) {
    this.line = htmlEl("div", "caption", parent);
    this.box = htmlEl("div", "say", this.line);
    this.box.setAttribute("role", "status");
    this.box.setAttribute("aria-live", "polite");
    this.text = htmlEl("span", "", this.box);
    this.log = htmlEl("details", "log", this.line);
    this.summary = htmlEl("summary", "", this.log);
    this.list = htmlEl("ul", "menu", this.log);
    this.list.tabIndex = 0; // long ones scroll
    closeWhenLeft(this.log);
  }

  // Quiet while frames fly by: the reader hears the frame one settles on.
  quiet(on) {
    this.box.setAttribute("aria-live", on ? "off" : "polite");
    if (!on) this.text.replaceChildren(this.text.textContent);
  }

  paint({ headline = "", say }) {
    putText(this.text, headline);
    this.log.hidden = say.length < 2;
    putText(this.summary, ngettext("{n} event", "{n} events", say.length));
    if (this.said !== say) this.list.replaceChildren(...say.map((sentence) => htmlEl("li", "", null, sentence)));
    this.said = say;
  }
}

class Lanes {
  constructor(map, parent) {
    this.map = map;
    this.box = htmlEl("div", "lanes", parent);
    this.signature = "";
  }

  paint(state) {
    this.box.hidden = this.map.store.seqs.length < 2 || !this.map.shows("tokens"); // nothing to choose from, or for
    const lanes = this.read(state);
    const signature = JSON.stringify([lanes, this.map.seq]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.box.replaceChildren(...lanes.filter((l) => l.items.length).map((l) => this.lane(l)));
  }

  read(state) {
    const lanes = LANES.map(([status, name]) => ({ status, name, items: [], reason: "" }));
    const lane = (status) => lanes.find((l) => l.status === status);
    for (const request of state.requests.values()) {
      if (!request.seqs.length) lane(request.status)?.items.push({ seq: -1, id: request.request_id });
      for (const seq of request.seqs) lane(state.seqs[seq]?.finish ? "finished" : request.status)?.items.push({ seq, id: this.map.seqName(seq) });
      const here = lane(request.status);
      if (here && request.reason && request.status !== "finished" && !here.reason) here.reason = request.reason;
    }
    return lanes;
  }

  lane({ name, items, reason, status }) {
    const row = htmlEl("div", `lane ${status}`);
    htmlEl("span", "lane-name", row, name);
    const shown = status === "finished" ? items.slice(-CHIPS_A_LANE) : items.slice(0, CHIPS_A_LANE);
    for (const item of shown) row.append(item.seq < 0 ? htmlEl("span", "more", null, item.id) : this.chip(item));
    if (shown.length < items.length) htmlEl("span", "more", row, _("and {n} more", { n: items.length - shown.length }));
    if (reason) htmlEl("span", "reason", row, reason);
    return row;
  }

  chip({ seq, id }) {
    const button = htmlEl("button", "owner");
    button.type = "button";
    button.style.setProperty("--o", this.map.colour(seq));
    button.setAttribute("aria-pressed", String(seq === this.map.seq));
    button.setAttribute("aria-label", _("Show sequence {id}", { id }));
    button.dataset.seqId = id;
    htmlEl("b", "", button, this.map.letter(seq));
    if (id !== this.map.letter(seq)) htmlEl("span", "id", button, id);
    button.onclick = () => this.map.chooseSeq(seq);
    return button;
  }
}

// One line about the lit spot, with the address arithmetic spelled out.
function readoutText(map, state, target, spots) {
  if (hasUnknownPlacement(map)) return storedReadout(map, state, target, spots);
  if (!target) return map.withControls ? hintOf(state) : "";
  const size = state.layout.block_size;
  const parts = [];
  const [token] = spots.tokens;
  if ((target.kind === "token" || target.kind === "slot" || target.kind === "arena") && token) {
    const [seq, pos] = token;
    const [id, text] = map.store.tokens[state.seqs[seq].tokens[pos]];
    parts.push(_("token {pos} of {name}: “{text}” (id {id})", { pos, name: map.seqName(seq), text, id }));
    const block = state.seqs[seq].table[Math.floor(pos / size)];
    if (size && block !== undefined) {
      parts.push(`block_table[${pos} // ${size}] = block_table[${Math.floor(pos / size)}] = ${block}`);
      parts.push(_("slot = {sum}", { sum: `${block} × ${size} + ${pos} % ${size} = ${block * size + (pos % size)}` }));
    }
    if (pos >= state.seqs[seq].num_computed) parts.push(_("keys and values not written yet"));
  } else if (target.kind === "arena") parts.push(_("slot {id}", { id: target.off }));
  else if (target.kind === "slot") parts.push(_("slot {id}", { id: addressSum(target.block, target.off, size) }));
  if (target.kind === "arena") {
    const region = state.regions.find((r) => target.off >= r.start && target.off < r.start + r.num_slots);
    parts.push(regionText(target.off, region));
  }
  if (target.kind === "row") parts.push(entryText(map.seqName(target.seq), target.logical, _("physical block {id}", { id: target.block })));
  const block = state.blocks[spots.blocks[0]];
  if (block && target.kind !== "token") {
    const facts = { id: spots.blocks[0], status: statusWord(blockStatus(block)), n: block.owners.length };
    parts.push(block.cached ? _("block {id}: {status}, ref_cnt {n}, in the prefix cache", facts) : _("block {id}: {status}, ref_cnt {n}", facts));
  }
  return parts.join("  ·  ");
}

function hintOf({ layout }) {
  return layout.num_blocks ? _("Point at a token, a table row or a block to follow it.") : _("Point at a token or a slot to follow it.");
}

function regionText(slot, region) {
  if (!region) return _("slot {slot}: free", { slot });
  const { request_id: name, num_written: n, num_slots: size } = region;
  return _("slot {slot}: reserved for {name}, {n} of {size} written", { slot, name, n, size });
}

function addressSum(block, off, size) {
  return `${block} × ${size} + ${off} = ${block * size + off}`;
}

// An entry of a block table.
function entryText(name, logical, physical) {
  return _("{name}: logical block {logical} is {physical}", { name, logical, physical });
}

class DataTables {
  constructor(map, parent) {
    this.map = map;
    this.box = htmlEl("details", "data-tables", parent);
    htmlEl("summary", "", this.box, _("The same as text and tables"));
    this.body = htmlEl("div", "data-tables-body", this.box);
    this.box.ontoggle = () => this.map.paintWords();
  }

  paint(state, frame) {
    if (!this.box.open) return;
    const sequences = hasUnknownPlacement(this.map) ? [] : [this.sequences(state)];
    this.body.replaceChildren(this.sentences(frame), ...sequences, ...this.memory(state));
  }

  sentences(frame) {
    const list = htmlEl("ul");
    for (const sentence of frame.say) htmlEl("li", "", list, sentence);
    return list;
  }

  sequences(state) {
    const heads = [_("letter"), _("sequence"), _("tokens known"), _("KV written"), _("block table"), _("CPU block table"), _("ended")];
    const rows = state.seqs.flatMap((s, i) => s ? [[this.map.letter(i), this.map.seqName(i), s.num_tokens, s.num_computed, s.table.join(" "), s.cpu_table.join(" "), s.finish ?? ""]] : []);
    return makeTable(_("Sequences"), heads, rows);
  }

  memory(state) {
    if (hasUnknownPlacement(this.map)) return [storedTable(this.map, state)];
    const tables = [];
    if (state.blocks.length) tables.push(makeTable(_("Physical blocks"), BLOCK_HEADS, this.blockRows(state, state.blocks)));
    if (state.cpu.length) tables.push(makeTable(_("CPU swap pool"), BLOCK_HEADS, this.blockRows(state, state.cpu)));
    if (state.layout.num_slots) {
      const heads = [_("request"), _("first slot"), _("slots held"), _("slots asked"), _("slots written")];
      const rows = state.regions.map((r) => [r.request_id, r.start, r.num_slots, r.num_needed, r.num_written]);
      tables.push(makeTable(_("Reservations"), heads, rows));
    }
    return tables;
  }

  blockRows(state, blocks) {
    const many = blocks.length > TABLE_ROWS;
    const rows = blocks.flatMap((b, id) => {
      if (many && blockStatus(b) === "free") return [];
      const holders = b.owners.map(([seq, logical]) => `${this.map.seqName(seq)}[${logical}]`).join(", ");
      return [[id, statusWord(blockStatus(b)), b.owners.length, holders, b.slots.map((c) => (c ? this.map.tokenText(c.token) : "–")).join(" ")]];
    });
    return many ? rows.slice(0, TABLE_ROWS) : rows;
  }
}

function makeTable(caption, heads, rows) {
  const table = htmlEl("table");
  htmlEl("caption", "", table, caption);
  const headRow = htmlEl("tr", "", htmlEl("thead", "", table));
  for (const head of heads) htmlEl("th", "", headRow, head).scope = "col";
  const body = htmlEl("tbody", "", table);
  for (const row of rows) {
    const tr = htmlEl("tr", "", body);
    row.forEach((cell) => htmlEl("td", "", tr, String(cell)));
  }
  return table;
}

const LEGEND = [
  ["used", _("in use"), "blocks"], ["kept", _("cached: free, reusable (#)"), "blocks"], ["stale", _("free, old content"), "blocks"],
  ["blank", _("empty"), "blocks"],
  ["times", _("×2: two block tables point to it (ref_cnt)"), "blocks"],
  ["used", _("used"), "arena"], ["reserved", _("reserved, not used"), "arena"], ["blank", _("free"), "arena"],
  ["stale", _("letters in italics: free, old content"), "arena"],
];
const SELDOM = ["kept", "stale", "times"]; // explained where a scene has them

// A page may leave parts of the picture out, so that its one idea is seen first. This brings them in.
class MoreDetail {
  constructor(map, parent) {
    this.map = map;
    this.isOn = false;
    this.button = htmlEl("button", "more-detail", parent, _("More detail"));
    this.button.type = "button";
    this.button.onclick = () => {
      this.isOn = !this.isOn;
      this.map.available.reset();
      this.map.relayout();
    };
  }

  paint() {
    this.button.hidden = this.map.parts.length === ALL_PARTS.length;
    this.button.setAttribute("aria-pressed", String(this.isOn));
  }
}

// What the hatches mean, for the kind of memory that is drawn.
class Legend {
  constructor(map, parent) {
    this.map = map;
    this.box = htmlEl("ul", "legend", parent);
    this.items = LEGEND.map(([look, text, memory]) => {
      const item = htmlEl("li", "", this.box);
      if (look !== "times" && !(look === "stale" && memory === "arena")) htmlEl("i", look, item);
      item.append(text);
      return { item, look, memory };
    });
  }

  // The same for every frame. A run that goes on may come to any look, so all of them are explained from the start.
  paint() {
    const { looks, memories } = this.map.store;
    const shown = { blocks: memories.has("blocks") && !hasUnknownPlacement(this.map), arena: memories.has("arena") };
    const mayHave = (look) => !SELDOM.includes(look) || this.map.payload.is_open || looks.has(look);
    for (const { item, look, memory } of this.items) item.hidden = !shown[memory] || !mayHave(look);
  }
}
