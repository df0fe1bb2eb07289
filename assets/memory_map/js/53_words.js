// Everything in words: the frame's sentences (a live region), the sequences by lane, the reading of one spot,
// and the picture as real tables.

const SENTENCES_SHOWN = 4;
const LANES = [
  ["running", said("Running")], ["waiting", said("Waiting")], ["preempted", said("Preempted")], ["swapped", said("Swapped out")],
  ["refused", said("Refused")], ["finished", said("Done")],
];
const BLOCK_HEADS = [said("block"), said("state"), said("ref_cnt"), said("holders"), said("slots")];
const CHIPS_A_LANE = 24;
const TABLE_ROWS = 400;

class Caption {
  constructor(parent) {
    this.box = htmlEl("div", "say", parent);
    this.box.setAttribute("role", "status");
    this.box.setAttribute("aria-live", "polite");
    this.text = htmlEl("span", "", this.box);
  }

  // Quiet while frames fly by: the reader hears the frame one settles on.
  quiet(on) {
    this.box.setAttribute("aria-live", on ? "off" : "polite");
    if (!on) this.text.replaceChildren(this.text.textContent);
  }

  paint(say) {
    const rest = say.length - SENTENCES_SHOWN;
    const shown = rest > 1 ? say.slice(0, SENTENCES_SHOWN).concat(said("And {n} more, in the tables below.", { n: rest })) : say;
    putText(this.text, shown.join(" "));
  }
}

class Lanes {
  constructor(map, parent) {
    this.map = map;
    this.box = htmlEl("div", "lanes", parent);
    this.signature = "";
  }

  paint(state) {
    this.box.hidden = this.map.store.seqs.length < 2; // nothing to choose from
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
    if (shown.length < items.length) htmlEl("span", "more", row, said("and {n} more", { n: items.length - shown.length }));
    if (reason) htmlEl("span", "reason", row, reason);
    return row;
  }

  chip({ seq, id }) {
    const button = htmlEl("button", "owner");
    button.type = "button";
    button.style.setProperty("--o", this.map.colour(seq));
    button.setAttribute("aria-pressed", String(seq === this.map.seq));
    button.setAttribute("aria-label", said("Show sequence {id}", { id }));
    button.dataset.seqId = id;
    htmlEl("b", "", button, this.map.letter(seq));
    if (id !== this.map.letter(seq)) htmlEl("span", "id", button, id);
    button.onclick = () => this.map.chooseSeq(seq);
    return button;
  }
}

// One line about the lit spot, with the address arithmetic spelled out.
function readoutText(map, state, target, spots) {
  if (isPlaceless(map)) return placelessReadout(map, state, target, spots);
  if (!target) return map.withControls ? hintOf(state) : "";
  const size = state.layout.block_size;
  const parts = [];
  const [token] = spots.tokens;
  if ((target.kind === "token" || target.kind === "slot" || target.kind === "arena") && token) {
    const [seq, pos] = token;
    const [id, text] = map.store.tokens[state.seqs[seq].tokens[pos]];
    parts.push(said("token {pos} of {name}: “{text}” (id {id})", { pos, name: map.seqName(seq), text, id }));
    const block = state.seqs[seq].table[Math.floor(pos / size)];
    if (size && block !== undefined) {
      parts.push(`block_table[${pos} // ${size}] = block_table[${Math.floor(pos / size)}] = ${block}`);
      parts.push(said("slot = {sum}", { sum: `${block} × ${size} + ${pos} % ${size} = ${block * size + (pos % size)}` }));
    }
    if (pos >= state.seqs[seq].num_computed) parts.push(said("keys and values not written yet"));
  } else if (target.kind === "arena") parts.push(said("slot {id}", { id: target.off }));
  else if (target.kind === "slot") parts.push(said("slot {id}", { id: addressSum(target.block, target.off, size) }));
  if (target.kind === "arena") {
    const region = state.regions.find((r) => target.off >= r.start && target.off < r.start + r.num_slots);
    parts.push(regionText(target.off, region));
  }
  if (target.kind === "row") parts.push(entryText(map.seqName(target.seq), target.logical, said("physical block {id}", { id: target.block })));
  const block = state.blocks[spots.blocks[0]];
  if (block && target.kind !== "token") {
    const facts = { id: spots.blocks[0], status: statusWord(blockStatus(block)), n: block.owners.length };
    parts.push(block.cached ? said("block {id}: {status}, ref_cnt {n}, findable by its content", facts) : said("block {id}: {status}, ref_cnt {n}", facts));
  }
  return parts.join("  ·  ");
}

function hintOf({ layout }) {
  return layout.num_blocks ? said("Point at a token, a table row or a block to follow it.") : said("Point at a token or a slot to follow it.");
}

function regionText(slot, region) {
  if (!region) return said("slot {slot}: free", { slot });
  const { request_id: name, num_written: n, num_slots: size } = region;
  return said("slot {slot}: reserved for {name}, {n} of {size} written", { slot, name, n, size });
}

function addressSum(block, off, size) {
  return `${block} × ${size} + ${off} = ${block * size + off}`;
}

// An entry of a block table.
function entryText(name, logical, physical) {
  return said("{name}: logical block {logical} is {physical}", { name, logical, physical });
}

class Twin {
  constructor(map, parent) {
    this.map = map;
    this.box = htmlEl("details", "twin", parent);
    htmlEl("summary", "", this.box, said("The same as text and tables"));
    this.body = htmlEl("div", "twin-body", this.box);
    this.box.ontoggle = () => this.map.paintWords();
  }

  paint(state, frame) {
    if (!this.box.open) return;
    const sequences = isPlaceless(this.map) ? [] : [this.sequences(state)];
    this.body.replaceChildren(this.sentences(frame), ...sequences, ...this.memory(state));
  }

  sentences(frame) {
    const list = htmlEl("ul");
    for (const sentence of frame.say) htmlEl("li", "", list, sentence);
    return list;
  }

  sequences(state) {
    const heads = [said("letter"), said("sequence"), said("tokens known"), said("KV written"), said("block table"), said("CPU block table"), said("ended")];
    const rows = state.seqs.flatMap((s, i) => s ? [[this.map.letter(i), this.map.seqName(i), s.num_tokens, s.num_computed, s.table.join(" "), s.cpu_table.join(" "), s.finish ?? ""]] : []);
    return makeTable(said("Sequences"), heads, rows);
  }

  memory(state) {
    if (isPlaceless(this.map)) return [placelessTable(this.map, state)];
    const tables = [];
    if (state.blocks.length) tables.push(makeTable(said("Physical blocks"), BLOCK_HEADS, this.blockRows(state, state.blocks)));
    if (state.cpu.length) tables.push(makeTable(said("CPU swap pool"), BLOCK_HEADS, this.blockRows(state, state.cpu)));
    if (state.layout.num_slots) {
      const heads = [said("request"), said("first slot"), said("slots held"), said("slots asked"), said("slots written")];
      const rows = state.regions.map((r) => [r.request_id, r.start, r.num_slots, r.num_needed, r.num_written]);
      tables.push(makeTable(said("Reservations"), heads, rows));
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
  ["used", said("in use"), "blocks"], ["kept", said("free, still findable (#)"), "blocks"], ["stale", said("free, old content"), "blocks"],
  ["blank", said("empty"), "blocks"],
  ["times", said("×2: two block tables name it (ref_cnt)"), "blocks"],
  ["used", said("used"), "arena"], ["reserved", said("reserved, not used"), "arena"], ["blank", said("free"), "arena"],
  ["stale", said("letters in italics: free, old content"), "arena"],
];
const SELDOM = ["kept", "stale", "times"]; // explained where a run has them

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

  paint(state) {
    const shown = { blocks: state.layout.num_blocks > 0 && !isPlaceless(this.map), arena: state.layout.num_slots > 0 };
    const { looks } = this.map.store;
    for (const { item, look, memory } of this.items) item.hidden = !shown[memory] || (SELDOM.includes(look) && !looks.has(look));
  }
}
