// What Python hears: clicks at once, the position once the reader has let go. Numbered, so that a report can be told
// from its repetition in a later rerun.

class Reports {
  constructor(map) {
    this.map = map;
    this.count = 0;
    this.startAfresh();
  }

  // Another trace: what was reported says nothing about it.
  startAfresh() {
    this.unanswered = [];
    this.last = null;
  }

  tell(name, value) {
    this.count += 1;
    this.send?.(name, value && { ...value, seq: this.count, trace_id: this.map.traceId });
  }

  tellPosition(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { index, frame } = this.map;
      if (this.last === index) return;
      this.last = index;
      this.unanswered.push(index);
      this.tell("position", { index, step: frame.step });
    }, delay);
  }

  // Whether a position asked from Python is only the answer to a report of ours. Python may answer fewer times than
  // we report: an answer settles its report and those before it.
  isAnswer(position) {
    const settled = this.unanswered.lastIndexOf(position);
    this.unanswered.splice(0, settled + 1);
    return settled >= 0;
  }

  stop() {
    clearTimeout(this.timer);
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
