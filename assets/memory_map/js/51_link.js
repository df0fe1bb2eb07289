// Lighting up: a token, a logical block and a physical block are one thing seen three ways. Whichever is hovered,
// focused or chosen lights the others, in this map and in every other map on the page.

const LINK_EVENT = "memory-map:link";

class Link {
  constructor(map) {
    this.map = map;
    this.hover = null; // what the pointer or the focus is on
    this.pick = null; // what was clicked
    this.remote = null; // tokens another map points at
    this.followed = []; // tokens that the page speaks of: lit while nobody points at anything
    this.lit = [];
    this.onRemote = (e) => {
      if (e.detail.source === map.uid) return;
      this.remote = e.detail.tokens;
      this.show();
    };
    document.addEventListener(LINK_EVENT, this.onRemote);
  }

  stop() {
    document.removeEventListener(LINK_EVENT, this.onRemote);
  }

  // Read what a node of the picture stands for.
  static targetOf(node) {
    const hit = node.closest?.("[data-kind]");
    if (!hit) return null;
    const { kind, block, off, seq, pos, logical } = hit.dataset;
    const number = (text) => (text === undefined ? null : Number(text));
    return { kind, block: number(block), off: number(off), seq: number(seq), pos: number(pos), logical: number(logical) };
  }

  setHover(target) {
    this.hover = target;
    this.show();
    this.notifyOtherMaps();
  }

  setPick(target) {
    const same = target && this.pick && JSON.stringify(target) === JSON.stringify(this.pick);
    this.pick = same ? null : target;
    this.show();
    this.notifyOtherMaps();
  }

  notifyOtherMaps() {
    const target = this.hover ?? this.pick;
    const tokens = target ? this.map.resolve(target).tokens.map(([seq, pos]) => [this.map.store.seqs[seq].seq_id, pos]) : [];
    document.dispatchEvent(new CustomEvent(LINK_EVENT, { detail: { source: this.map.uid, tokens } }));
  }

  // Repaint the lights; called after every frame too, since the same token may have moved.
  show() {
    for (const node of this.lit) node.classList.remove("lit");
    this.lit = [];
    const target = this.hover ?? this.pick;
    const spots = target ? this.map.resolve(target) : this.map.resolveTokens(this.remote?.length ? this.remote : this.followed);
    for (const node of this.map.picture.nodesOf(spots)) {
      node.classList.add("lit");
      this.lit.push(node);
    }
    this.map.showReadout(target, spots);
  }
}

// The meaning of a target in a state: blocks, slots, table rows and tokens that are the same thing.
// Each is a list: blocks [id], slots [[block, off]], rows [[seq, logical]], tokens [[seq, pos]], arena [slot].
function resolveTarget(state, target, chosen) {
  const spots = { blocks: [], slots: [], rows: [], tokens: [], arena: [], cpu: [] };
  switch (target.kind) {
    case "token":
      addToken(state, spots, target.seq, target.pos);
      break;
    case "row":
      addBlock(state, spots, target.block, [[target.seq, target.logical]]);
      break;
    case "block":
      addBlock(state, spots, target.block, state.blocks[target.block]?.owners ?? []);
      break;
    case "cpu":
      spots.cpu.push(target.block);
      break;
    case "slot":
      addSlot(state, spots, target.block, target.off, chosen);
      break;
    case "arena":
      addArenaSlot(state, spots, target.off);
      break;
  }
  return spots;
}

function addToken(state, spots, seq, pos) {
  const size = state.layout.block_size;
  const s = state.seqs[seq];
  if (!s || pos >= s.num_tokens) return;
  spots.tokens.push([seq, pos]);
  const slot = state.arena.findIndex((c, i) => c && c.seq === seq && c.position === pos && isWritten(state, i));
  if (slot >= 0) spots.arena.push(slot);
  const logical = Math.floor(pos / size);
  if (!size || s.table[logical] === undefined) return;
  spots.rows.push([seq, logical]);
  spots.blocks.push(s.table[logical]);
  if (pos < s.num_computed) spots.slots.push([s.table[logical], pos % size]);
}

function addBlock(state, spots, block, owners) {
  const size = state.layout.block_size;
  if (!state.blocks[block]) return;
  spots.blocks.push(block);
  for (const [seq, logical] of owners) {
    spots.rows.push([seq, logical]);
    const end = Math.min((logical + 1) * size, state.seqs[seq]?.num_tokens ?? 0);
    for (let pos = logical * size; pos < end; pos++) spots.tokens.push([seq, pos]);
  }
}

function addSlot(state, spots, block, off, chosen) {
  const size = state.layout.block_size;
  const record = state.blocks[block];
  if (!record) return;
  spots.blocks.push(block);
  spots.slots.push([block, off]);
  for (const [seq, logical] of record.owners) {
    spots.rows.push([seq, logical]);
    const pos = logical * size + off;
    if (pos < (state.seqs[seq]?.num_tokens ?? 0)) spots.tokens.push([seq, pos]);
  }
  spots.tokens.sort(([a], [b]) => Number(b === chosen) - Number(a === chosen));
}

function addArenaSlot(state, spots, slot) {
  spots.arena.push(slot);
  const content = state.arena[slot];
  if (content && isWritten(state, slot)) spots.tokens.push([content.seq, content.position]);
}
