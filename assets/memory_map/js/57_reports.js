// What Python hears: clicks at once, the position once the reader has let go. Numbered, so that Python can tell a report
// from its repetition, and can name the last one it has heard. A position is told until it is heard: a bad network may
// lose it, and a session that has only just begun takes it for something old (views/map_reports.py).

const PATIENCE_MS = 2500;
const LOOK_AGAIN_MS = 200;
let numReports = 0; // of all maps of this page: one that is mounted anew goes on counting

class Reports {
  constructor(map) {
    this.map = map;
    this.startAfresh();
  }

  // Another trace: what was reported says nothing about it.
  startAfresh() {
    this.unheard = null;
    this.last = null;
    clearTimeout(this.again);
  }

  tell(name, value) {
    numReports += 1;
    this.send?.(name, value && { ...value, seq: numReports, session: this.session, trace_id: this.map.traceId });
  }

  tellPosition(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { index, frame } = this.map;
      if (this.last === index) return;
      this.last = index;
      this.insistOn({ index, step: frame.step }, PATIENCE_MS);
    }, delay);
  }

  insistOn(place, patience) {
    this.tell("position", place);
    if (!this.session) return; // a document without a server: nobody answers
    this.unheard = { place, seq: numReports };
    this.repeatAfter(patience, patience * 2);
  }

  // Not while a script runs, which may be the one that hears it.
  repeatAfter(delay, patience) {
    clearTimeout(this.again);
    this.again = setTimeout(() => {
      if (isPageAtRest()) this.insistOn(this.unheard.place, patience);
      else this.repeatAfter(LOOK_AGAIN_MS, patience);
    }, delay);
  }

  // What the page says it has heard. Returns the position that is answered by this, if one is. A session that is new
  // to us knows nothing of what was told to the one before.
  hear(heard) {
    if (!heard) return null;
    const isNewSession = heard.session !== this.session;
    this.session = heard.session;
    if (!this.unheard) return null;
    if (heard.position === null || heard.position < this.unheard.seq) {
      if (isNewSession) this.repeatAfter(LOOK_AGAIN_MS, PATIENCE_MS);
      return null;
    }
    const { index } = this.unheard.place;
    this.unheard = null;
    clearTimeout(this.again);
    return index;
  }

  stop() {
    clearTimeout(this.timer);
    clearTimeout(this.again);
  }
}

// Streamlit says in these attributes how its connection and its script are.
function isPageAtRest() {
  const app = document.querySelector("[data-testid=stApp]");
  return app?.dataset.testConnectionState === "CONNECTED" && app.dataset.testScriptState === "notRunning";
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
