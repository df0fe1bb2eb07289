// One fast move for each change, and none for readers who ask for none.

const MOVE_MS = 200;
const MAX_MOVES = 24;

class Motion {
  constructor(map, parent) {
    this.map = map;
    this.g = svgEl("g", { class: "ghosts", "aria-hidden": "true" }, parent);
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
  }

  play(changes) {
    this.g.replaceChildren();
    if (this.still.matches) return;
    for (const move of changes.flatMap((c) => this.movesOf(c)).slice(0, MAX_MOVES)) this.fly(move);
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
    const flight = ghost.animate(
      [{ transform: start, opacity: 0.95 }, { transform: "none", opacity: 0.95, offset: 0.8 }, { transform: "none", opacity: 0 }],
      { duration: MOVE_MS, easing: "cubic-bezier(.2,.7,.3,1)" },
    );
    flight.onfinish = () => ghost.remove();
  }
}
