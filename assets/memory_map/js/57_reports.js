// What is reported to Python: clicks at once, the position once the reader has let go. Reports are numbered, so that Python
// can tell one from its repetition and acknowledge the last. A position is sent again until it is acknowledged: a bad
// network may lose it, and a session that has only just begun takes it for an old one (views/memory_map/reports.py).

const ACK_TIMEOUT_MS = 2500;
const RETRY_WHEN_BUSY_MS = 200;
let numReports = 0; // of all maps of this page: one that is mounted anew goes on counting

class Reports {
  constructor(map) {
    this.map = map;
    this.reset();
  }

  // Another trace: what was reported says nothing about it.
  reset() {
    this.pending = null;
    this.last = null;
    clearTimeout(this.again);
  }

  report(name, value) {
    numReports += 1;
    this.send?.(name, value && { ...value, seq: numReports, session: this.session, trace_id: this.map.traceId });
  }

  reportPosition(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { index, frame } = this.map;
      if (this.last === index) return;
      this.last = index;
      this.sendUntilAcknowledged({ index, step: frame.step }, ACK_TIMEOUT_MS);
    }, delay);
  }

  sendUntilAcknowledged(place, patience) {
    this.report("position", place);
    if (!this.session) return; // a document without a server: nobody answers
    this.pending = { place, seq: numReports };
    this.retryAfter(patience, patience * 2);
  }

  // Not while a script runs, which may be the one that receives it.
  retryAfter(delay, patience) {
    clearTimeout(this.again);
    this.again = setTimeout(() => {
      if (isAtRest()) this.sendUntilAcknowledged(this.pending.place, patience);
      else this.retryAfter(RETRY_WHEN_BUSY_MS, patience);
    }, delay);
  }

  // `acknowledged`: the session, and the number of the last position it received. Returns the index of the position that
  // is acknowledged now, if one is. A new session knows nothing of what was sent to the one before.
  acknowledge(acknowledged) {
    if (!acknowledged) return null;
    const isNewSession = acknowledged.session !== this.session;
    this.session = acknowledged.session;
    if (!this.pending) return null;
    if (acknowledged.position === null || acknowledged.position < this.pending.seq) {
      if (isNewSession) this.retryAfter(RETRY_WHEN_BUSY_MS, ACK_TIMEOUT_MS);
      return null;
    }
    const { index } = this.pending.place;
    this.pending = null;
    clearTimeout(this.again);
    return index;
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.again);
  }
}

// A click in the words of `MapSelection`: what was clicked, and the block, slot, sequence and token it stands for.
function selectionOf(map, target) {
  const { blocks, slots, rows, tokens } = map.resolve(target);
  const size = map.state.layout.block_size;
  const [token] = tokens;
  const seq = target.seq ?? token?.[0] ?? rows[0]?.[0];
  const slot = target.kind === "arena" ? target.off : slots.length ? slots[0][0] * size + slots[0][1] : null;
  return {
    kind: target.kind === "arena" ? "slot" : target.kind, block: target.block ?? blocks[0] ?? null, slot,
    seq_id: seq === undefined || seq === null ? null : map.seqName(seq), logical: rows[0]?.[1] ?? null,
    token: target.kind === "block" || target.kind === "row" ? null : token?.[1] ?? null,
  };
}
