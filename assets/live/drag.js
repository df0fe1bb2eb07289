// Two sliders that drive the engine while they are dragged (views/live/drag.py says what a value asks for).
//
// A value is sent at most every SEND_MS while the thumb moves, and once more when it is let go. Each has a number, and
// the page says which it has heard of: until it has heard the last one, its own values are those of an earlier moment.

const SEND_MS = 100;
const NAMES = ["requests", "tokens"];

class Drag {
  constructor(root) {
    this.inputs = Object.fromEntries(NAMES.map((name) => [name, root.querySelector(`input.${name}`)]));
    this.outputs = Object.fromEntries(NAMES.map((name) => [name, root.querySelector(`output.${name}`)]));
    this.number = 0;
    const words = [_("Requests"), _("Tokens")];
    root.querySelectorAll(".name").forEach((node, i) => (node.textContent = words[i]));
    for (const name of NAMES) {
      this.inputs[name].oninput = () => this.moved(name);
      this.inputs[name].onchange = () => this.send(name);
      this.inputs[name].onpointerdown = () => (this.held = name);
      this.inputs[name].onpointerup = this.inputs[name].onpointercancel = () => (this.held = null);
    }
  }

  update(data, report) {
    this.report = report;
    this.number = Math.max(this.number, data.number); // a tab that was loaded anew counts on
    for (const name of NAMES) {
      const input = this.inputs[name];
      input.disabled = data.disabled;
      if (this.held === name || data.number < this.number || this.timer) continue;
      input.max = data.most[name];
      input.value = data.values[name];
      this.say(name);
    }
  }

  moved(name) {
    this.say(name);
    this.timer ??= setTimeout(() => this.send(name), SEND_MS);
  }

  send(name) {
    clearTimeout(this.timer);
    this.timer = null;
    const value = Number(this.inputs[name].value);
    if (this.sent?.name === name && this.sent.value === value && this.held === name) return;
    this.sent = { name, value };
    this.number += 1;
    this.report("wanted", { name, value, number: this.number });
  }

  say(name) {
    this.outputs[name].textContent = this.inputs[name].value;
  }
}

const mounted = new WeakMap();

export default function drag({ data, parentElement, setStateValue }) {
  if (!mounted.has(parentElement)) mounted.set(parentElement, new Drag(parentElement.querySelector(".drag")));
  mounted.get(parentElement).update(data, setStateValue);
}
