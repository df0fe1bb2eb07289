// One of a row of like nodes is in the tab order; arrow keys move the focus among them.

class Roving {
  constructor() {
    this.nodes = [];
    this.at = 0;
  }

  // After a repaint: these nodes, in order. The place in the order stays.
  refresh(nodes) {
    if (this.current) put(this.current, { tabindex: -1 });
    this.nodes = nodes;
    this.enter(Math.max(0, Math.min(this.at, nodes.length - 1)));
  }

  enter(at) {
    if (this.current) put(this.current, { tabindex: -1 });
    this.at = at;
    this.current = this.nodes[at];
    if (this.current) put(this.current, { tabindex: 0 });
  }

  // Move from a node by an arrow key in a grid of `columns`; false when the key does not lead anywhere.
  move(node, key, columns) {
    const delta = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
    const to = this.nodes.indexOf(node) + delta;
    if (delta === undefined || !this.nodes[to]) return false;
    this.enter(to);
    this.current.focus();
    return true;
  }
}
