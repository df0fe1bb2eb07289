// Prefix trees as lists that open and close (views/remote/radix_tree.py has the fields of a node).
//
// The page sends the whole tree at each look, once a second on a live server. A node that stays keeps its element: what a
// reader has opened or closed, focused or selected stays as it is. The way to the most shared prefix opens by itself; only
// the reader closes anything.

class RadixTree {
  constructor(region) {
    this.region = region;
    this.items = new Map();
    this.chosen = new Map(); // whether a node is open that the reader has opened or closed, by its id
  }

  update({ label, nodes }) {
    this.region.setAttribute("aria-label", label);
    const items = new Map();
    const lists = [{ list: listIn(this.region), size: 0 }];
    nodes.forEach((node, at) => {
      const isBranch = nodes[at + 1]?.depth > node.depth;
      const item = this.itemOf(node, isBranch);
      const level = lists[node.depth];
      place(level.list, item.element, level.size++);
      if (isBranch) lists[node.depth + 1] = { list: listIn(item.body), size: 0 };
      items.set(node.id, item);
    });
    for (const [id, item] of this.items) if (items.get(id) !== item) item.element.remove();
    this.items = items;
  }

  itemOf(node, isBranch) {
    const before = this.items.get(node.id);
    const item = before?.isBranch === isBranch ? before : this.newItem(node.id, isBranch);
    if (isBranch && node.open && !this.chosen.has(node.id)) item.body.open = true;
    setText(item.words, node.words);
    setText(item.facts, node.facts);
    item.marks.replaceChildren(...node.marks.map(markOf));
    return item;
  }

  newItem(id, isBranch) {
    const element = document.createElement("li");
    const body = added(element, isBranch ? "details" : "div");
    const head = isBranch ? added(body, "summary") : body;
    const words = added(head, "span");
    words.className = "words";
    words.dir = "auto";
    if (isBranch) {
      body.open = this.chosen.get(id) ?? false;
      head.onclick = () => this.chosen.set(id, !body.open);
    }
    return { element, body, words, facts: added(head, "small"), marks: added(head, "span"), isBranch };
  }
}

const added = (parent, tag) => parent.appendChild(document.createElement(tag));
const listIn = (parent) => parent.querySelector(":scope > ul") ?? added(parent, "ul");

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function markOf([kind, text]) {
  const mark = document.createElement("span");
  mark.className = "mark";
  mark.dataset.mark = kind;
  mark.textContent = text;
  return mark;
}

// The element as child number `at` of the list; what is there already is not moved.
function place(list, element, at) {
  if (list.children[at] !== element) list.insertBefore(element, list.children[at] ?? null);
}

const mounted = new WeakMap();

export default function radixTree({ data, parentElement }) {
  if (!mounted.has(parentElement)) mounted.set(parentElement, new RadixTree(parentElement.querySelector(".tree")));
  mounted.get(parentElement).update(data);
}
