// One fast move for each change, and none for readers who ask for none or while a thumb is held: then the picture
// follows the hand. The next frame ends what still moves.

const MOVE_MS = 300;
const MAX_MOVES = 24;
const DROP = 0.7; // of a slot's height: how far a token falls into its slot where its sequence is not drawn above

class Motion {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "ghosts", "aria-hidden": "true" }, parent);
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.running = [];
    this.playedAt = -MOVE_MS;
    this.isHeld = false;
    this.hold = (e) => (this.isHeld = e.composedPath()[0].type === "range");
    this.release = () => (this.isHeld = false);
    window.addEventListener("pointerdown", this.hold, true);
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, this.release, true);
  }

  stop() {
    window.removeEventListener("pointerdown", this.hold, true);
    for (const end of ["pointerup", "pointercancel"]) window.removeEventListener(end, this.release, true);
  }

  get isUnwanted() {
    return this.isHeld || this.still.matches;
  }

  play(changes) {
    for (const flight of this.running) flight.cancel();
    this.running = [];
    this.g.replaceChildren();
    if (this.isUnwanted) return;
    const isFast = performance.now() - this.playedAt < MOVE_MS;
    this.playedAt = performance.now();
    for (const move of changes.flatMap((c) => this.movesOf(c)).slice(0, MAX_MOVES)) this.fly(move);
    if (isFast) return; // a run at full speed: nobody follows single tokens, and the engine may need this machine
    const written = changes.filter((c) => c.kind === "written").flatMap((c) => this.writesOf(c));
    for (const write of written.slice(0, MAX_MOVES)) this.fill(write);
  }

  // Where each token of a write comes from, and its slot: its place in the text where that is drawn.
  writesOf({ seq_id, start, slots }) {
    const { picture, seq, store } = this.map;
    const isDrawn = store.seqIndex(seq_id) === seq;
    return slots.map((slot, i) => ({ cell: isDrawn ? picture.strip.byPos.get(start + i) : null, parts: picture.slotParts(slot) }));
  }

  fill({ cell, parts }) {
    if (!parts) return;
    const box = parts.rect.getBoundingClientRect();
    const from = cell?.getBoundingClientRect();
    const [x, y] = from ? [from.x + from.width / 2 - box.x - box.width / 2, from.y - box.y] : [0, -DROP * box.height];
    const path = [{ transform: `translate(${f1(x)}px, ${f1(y)}px)`, opacity: 0.4 }, { transform: "none", opacity: 1 }];
    for (const node of [parts.rect, parts.text]) if (node) this.animate(node, path);
  }

  animate(node, path) {
    const flight = node.animate(path, { duration: MOVE_MS, easing: "cubic-bezier(.2,.7,.3,1)" });
    this.running.push(flight);
    return flight;
  }

  movesOf(c) {
    const block = (id) => this.map.picture.grid.boxOf(id);
    const cpu = (id) => this.map.picture.cpuGrid.boxOf(id);
    const colour = this.map.colourOf(c.seq_id ?? c.request_id);
    const row = this.map.picture.rowBox(c.seq_id, c.logical);
    const far = (box) => box && { x: box.x - 6, y: box.y - 6, w: box.w + 12, h: box.h + 12 };
    switch (c.kind) {
      case "allocated":
      case "shared":
        return [{ from: row ?? far(block(c.block)), to: block(c.block), colour }];
      case "copied":
        return [{ from: block(c.src), to: block(c.block), colour, solid: true }];
      case "freed":
        return [{ from: block(c.block), to: far(block(c.block)), colour }];
      case "swapped_out":
        return [{ from: block(c.block), to: cpu(c.cpu), colour, solid: true }];
      case "swapped_in":
        return [{ from: cpu(c.cpu), to: block(c.block), colour, solid: true }];
      case "shuffled":
        return c.permutation.map((to, from) => ({ from: block(from), to: block(to), colour: null })).filter((m) => m.from !== m.to);
      case "reserved":
      case "released": {
        if (!this.map.picture.arena.plan) return [];
        const box = this.map.picture.arena.boxOf(c.start, c.slots);
        return [c.kind === "reserved" ? { from: far(box), to: box, colour } : { from: box, to: far(box), colour }];
      }
      default:
        return [];
    }
  }

  fly({ from, to, colour, solid }) {
    if (!from || !to) return;
    const ghost = svgEl("rect", {
      class: `ghost${solid ? " solid" : ""}`, x: to.x, y: to.y, width: to.w, height: to.h, rx: 8, style: colour ? `--o:${colour}` : null,
    }, this.g);
    const start = `translate(${from.x - to.x}px, ${from.y - to.y}px) scale(${from.w / to.w}, ${from.h / to.h})`;
    ghost.style.transformOrigin = `${to.x}px ${to.y}px`;
    const path = [{ transform: start, opacity: 0.95 }, { transform: "none", opacity: 0.95, offset: 0.8 }, { transform: "none", opacity: 0 }];
    this.animate(ghost, path).onfinish = () => ghost.remove();
  }
}
