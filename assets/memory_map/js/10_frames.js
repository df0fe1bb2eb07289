// The frames of a trace and the state at any of them. Applying a frame is assignment of the new values it carries
// (fields: views/memory_map/frame_encoder.py), so any frame is reached from the nearest keyframe in at most KEYFRAME_EVERY steps.

const KEYFRAME_EVERY = 50;
const NO_MEMORY = { block_size: 0, num_blocks: 0, num_cpu_blocks: 0, num_slots: 0 };
const BLANK_SEQ = { tokens: [], num_tokens: 0, num_prompt: 0, num_computed: 0, table: [], cpu_table: [], finish: null };

function blankBlocks(count, blockSize) {
  const slots = Array(blockSize).fill(null);
  return Array.from({ length: count }, () => ({ owners: [], cached: false, slots }));
}

function emptyState() {
  return { layout: NO_MEMORY, blocks: [], cpu: [], arena: [], regions: [], seqs: [], requests: new Map(), nextFree: [] };
}

function copyState(s) {
  return {
    ...s, blocks: s.blocks.slice(), cpu: s.cpu.slice(), arena: s.arena.slice(), seqs: s.seqs.slice(),
    requests: new Map(s.requests),
  };
}

function resetState(s, layout) {
  Object.assign(s, emptyState(), { layout });
  s.blocks = blankBlocks(layout.num_blocks, layout.block_size);
  s.cpu = blankBlocks(layout.num_cpu_blocks, layout.block_size);
  s.arena = Array(layout.num_slots).fill(null);
}

function slotContent([, seq, position, token]) {
  return seq === undefined ? null : { seq, position, token };
}

// Records are replaced, never changed: whoever holds one can tell by identity whether it is still what is shown.
function applyBlocks(blocks, entries = []) {
  for (const e of entries) {
    const next = { ...blocks[e.id] };
    if (e.owners) next.owners = e.owners;
    if (e.cached !== undefined) next.cached = e.cached;
    if (e.slots) {
      next.slots = next.slots.slice();
      for (const slot of e.slots) next.slots[slot[0]] = slotContent(slot);
    }
    blocks[e.id] = next;
  }
}

function applySeqs(s, entries = []) {
  for (const e of entries) {
    const next = { ...(s.seqs[e.seq] ?? BLANK_SEQ) };
    if (e.add) Object.assign(next, extended(s.seqs[e.of] ?? BLANK_SEQ, e.keep, e.add, e.of === e.seq));
    for (const key of ["num_prompt", "num_computed", "table", "cpu_table", "finish"]) {
      if (e[key] !== undefined) next[key] = e[key];
    }
    s.seqs[e.seq] = next;
  }
}

// The first `keep` tokens of a sequence and `add` after them. A sequence that just grows shares one list over all
// frames (each knows its own `num_tokens`), so that scrubbing a long run copies nothing.
function extended({ tokens, num_tokens }, keep, add, isSame) {
  const count = keep + add.length;
  if (isSame && keep === num_tokens && keep > 0) {
    if (tokens.length === keep) tokens.push(...add);
    if (add.every((token, i) => tokens[keep + i] === token)) return { tokens, num_tokens: count };
  }
  return { tokens: tokens.slice(0, keep).concat(add), num_tokens: count };
}

function applyPart(s, part) {
  if (part.layout) resetState(s, part.layout);
  applySeqs(s, part.seqs);
  for (const request of part.requests ?? []) s.requests.set(request.request_id, request);
  applyBlocks(s.blocks, part.blocks);
  applyBlocks(s.cpu, part.cpu_blocks);
  for (const slot of part.arena ?? []) s.arena[slot[0]] = slotContent(slot);
  if (part.regions) s.regions = part.regions;
  if (part.next_free) s.nextFree = part.next_free;
}

function newFrame({ step, label, say, headline = say[0], figures = [], captions = [], focus = null, changes = [] }, ...parts) {
  return { step, label, say, headline, figures, captions, focus, changes, parts };
}

class FrameStore {
  constructor() {
    this.frames = []; // each { step, label, say, headline, figures, captions, focus, changes, parts }
    this.tokens = []; // [token_id, text]
    this.seqs = []; // { seq_id, request_id, letter, colour }
    this.numMessages = 0;
    this.usesSwap = false;
    this.memories = new Set(); // of any frame: "blocks", "arena"
    this.looks = new Set(); // what the legend must explain: kept, stale, times
    this.timesUsed = []; // by token: how often sequences were given it
    this.tableSizes = []; // by sequence: table entries in the last frame read
    this.tableShapes = new Set(); // every "3,5,2" of table sizes of any frame, so that layouts can hold still
    this.longest = []; // by sequence: the most tokens and table entries of any frame, for the same reason
    this.keyframes = [];
    this.at = -1;
    this.state = emptyState();
  }

  seqIndex(seqId) {
    return this.seqs.findIndex((s) => s.seq_id === seqId);
  }

  get length() {
    return this.frames.length;
  }

  append(messages) {
    for (const m of messages) {
      this.tokens.push(...(m.new_tokens ?? []));
      this.seqs.push(...(m.new_seqs ?? []));
      this.noteLengths(m);
      this.noteLooks(m);
      this.usesSwap ||= m.cpu_blocks !== undefined;
      this.numMessages += 1;
      if (m.amend && this.frames.length) this.amendLast(m);
      else this.frames.push(newFrame(m, m));
    }
  }

  amendLast(m) {
    const last = this.frames.at(-1);
    last.say = last.say.concat(m.say);
    last.headline = m.headline ?? m.say[0];
    last.changes = m.changes ?? [];
    last.parts.push(m);
    if (this.at === this.frames.length - 1) applyPart(this.state, m);
    if ((this.frames.length - 1) % KEYFRAME_EVERY === 0) this.keyframes.length = Math.min(this.keyframes.length, (this.frames.length - 1) / KEYFRAME_EVERY);
  }

  noteLengths({ layout, seqs = [] }) {
    if (layout) this.tableSizes = [];
    for (const e of seqs) {
      const known = (this.longest[e.seq] ??= { tokens: 0 });
      for (const token of e.add ?? []) this.timesUsed[token] = (this.timesUsed[token] ?? 0) + 1;
      if (e.add) known.tokens = Math.max(known.tokens, e.keep + e.add.length);
      const table = e.table?.length ? e.table : e.cpu_table?.length ? e.cpu_table : e.table;
      if (table) this.tableSizes[e.seq] = table.length;
    }
    this.tableShapes.add(this.tableSizes.filter((size) => size > 0).join(","));
  }

  // A block that is free and has been another's, or can be found by its content, or that two tables name.
  noteLooks({ layout, blocks = [], regions }) {
    if (layout?.num_blocks) this.memories.add("blocks");
    if (layout?.num_slots) this.memories.add("arena");
    for (const { owners = layout ? [] : null, cached, slots } of blocks) {
      if (cached) this.looks.add("kept");
      if (owners?.length > 1) this.looks.add("times");
      if (owners?.length === 0 && (slots || !layout)) this.looks.add("stale");
    }
    if (regions && regions.length < (this.numRegions ?? 0)) this.looks.add("stale");
    if (regions) this.numRegions = regions.length;
  }

  // The state at frame i. The object is reused: read it before seeking again.
  seek(i) {
    if (i < this.at || i - this.at > KEYFRAME_EVERY) this.jumpNear(i);
    while (this.at < i) this.advance();
    return this.state;
  }

  jumpNear(i) {
    const nearest = Math.min(Math.floor(i / KEYFRAME_EVERY), this.keyframes.length - 1);
    if (nearest >= 0 && (nearest * KEYFRAME_EVERY > this.at || i < this.at)) {
      this.state = copyState(this.keyframes[nearest]);
      this.at = nearest * KEYFRAME_EVERY;
    } else if (i < this.at) {
      this.state = emptyState();
      this.at = -1;
    }
  }

  advance() {
    this.at += 1;
    for (const part of this.frames[this.at].parts) applyPart(this.state, part);
    if (this.at % KEYFRAME_EVERY === 0 && this.keyframes.length === this.at / KEYFRAME_EVERY) {
      this.keyframes.push(copyState(this.state));
    }
  }
}

// What the pictures ask of a state, in the words of the engine's CacheState.
function blockStatus(block) {
  return block.owners.length ? "used" : block.cached ? "cached" : "free";
}

// A block's or a lane's status in words.
function statusWord(status) {
  return { used: _("used"), cached: _("cached"), free: _("free") }[status];
}

// How many of a used block's slots hold keys and values that some holder's table gives a meaning to.
function numLiveSlots(state, block) {
  const size = state.layout.block_size;
  let live = 0;
  for (const [seq, logical] of block.owners) {
    live = Math.max(live, Math.min(size, (state.seqs[seq]?.num_computed ?? 0) - logical * size));
  }
  return live;
}

function isLiveSeq(state, seq) {
  const s = state.seqs[seq];
  return s !== undefined && (s.finish === null || s.table.length > 0);
}
