// The transport: first, back, play, forward, last, the slider, speed, size. Every key has a button.

const SPEEDS = [0.5, 1, 2, 5, 10, 20];
const REPORT_AFTER_MS = 250;

class Controls {
  constructor(map, parent) {
    this.map = map;
    this.bar = htmlEl("div", "bar", parent);
    this.bar.setAttribute("role", "group");
    this.bar.setAttribute("aria-label", _("Play the frames"));
    this.first = this.button("«", _("First frame (Home)"), () => this.go(0), "icon");
    this.back = this.button("‹", _("Step back (left arrow)"), () => this.step(-1), "icon");
    this.playing = this.button("", _("Play (space)"), () => this.toggle(), "play");
    this.playIcon = htmlEl("span", "", this.playing, "▶");
    this.playWord = htmlEl("span", "word", this.playing, ` ${_("Play")}`);
    this.forward = this.button("›", _("Step forward (right arrow)"), () => this.step(1), "icon");
    this.last = this.button("»", _("Last frame (End)"), () => this.go(this.map.store.length - 1), "icon");
    this.range = htmlEl("input", "range", this.bar);
    Object.assign(this.range, { type: "range", min: "0", step: "1" });
    this.range.setAttribute("aria-label", _("Frame"));
    this.range.oninput = () => this.drag(Number(this.range.value));
    this.range.onchange = () => this.settle();
    this.label = htmlEl("span", "label", this.bar);
    this.speed = this.makeSpeed();
    this.timer = null;
    this.sizer = [this.button("A−", _("Smaller picture"), () => this.map.zoomBy(-1), "sizer"), this.button("A+", _("Larger picture"), () => this.map.zoomBy(1), "sizer")];
  }

  button(text, name, action, className = "") {
    const b = htmlEl("button", className, this.bar, text);
    b.type = "button";
    b.title = name;
    b.setAttribute("aria-label", name);
    b.onclick = action;
    return b;
  }

  makeSpeed() {
    const select = htmlEl("select", "speed", this.bar);
    select.setAttribute("aria-label", _("Speed, frames a second"));
    select.title = _("Speed, frames a second");
    for (const s of SPEEDS) htmlEl("option", "", select, _("{n}/s", { n: s })).value = String(s);
    select.value = "2";
    select.onchange = () => this.timer && this.start();
    return select;
  }

  // The thumb moves: the picture follows in the next animation frame, nothing else is asked.
  drag(index) {
    this.stop(false);
    this.wanted = index;
    this.map.quiet(true);
    this.raf ??= requestAnimationFrame(() => {
      this.raf = null;
      this.map.show(this.wanted, { moves: this.wanted === this.map.index + 1 });
    });
  }

  settle() {
    if (this.raf) cancelAnimationFrame(this.raf);
    this.raf = null;
    const wanted = Number(this.range.value); // also of a key, whose input and change come together
    this.map.show(wanted, { moves: wanted === this.map.index + 1 });
    this.map.quiet(false);
    this.map.reports.reportPosition(0);
  }

  go(index) {
    this.stop(false);
    this.map.show(index, {});
    this.map.reports.reportPosition(REPORT_AFTER_MS);
  }

  step(by) {
    this.stop(false);
    this.map.show(this.map.index + by, { moves: by > 0 });
    this.map.reports.reportPosition(REPORT_AFTER_MS);
  }

  toggle() {
    if (this.timer) this.stop(true);
    else this.start();
  }

  start() {
    clearInterval(this.timer);
    if (this.map.index >= this.map.store.length - 1) this.map.show(0, {});
    this.map.quiet(true);
    this.timer = setInterval(() => {
      this.map.show(this.map.index + 1, { moves: true });
      if (this.map.index >= this.map.store.length - 1) this.stop(true);
    }, 1000 / Number(this.speed.value));
    this.paintPlay();
  }

  stop(report) {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    this.map.quiet(false);
    this.paintPlay();
    if (report) this.map.reports.reportPosition(0);
  }

  paintPlay() {
    putText(this.playIcon, this.timer ? "⏸" : "▶");
    putText(this.playWord, ` ${this.timer ? _("Pause") : _("Play")}`);
    this.playing.setAttribute("aria-label", this.timer ? _("Pause (space)") : _("Play (space)"));
  }

  paint(index, count, label) {
    this.bar.hidden = !this.map.withControls;
    this.range.max = String(Math.max(count - 1, 0));
    if (this.range.value !== String(index)) this.range.value = String(index);
    this.range.setAttribute("aria-valuetext", label);
    putText(this.label, label);
    this.label.title = label; // a long one is cut
    this.first.disabled = this.back.disabled = index <= 0;
    this.last.disabled = this.forward.disabled = index >= count - 1;
    this.playing.disabled = this.range.disabled = count < 2;
  }

  // Keys anywhere in the map that no inner part has taken.
  key(e) {
    const onRange = e.composedPath()[0] === this.range;
    const onButton = ["BUTTON", "SUMMARY", "SELECT"].includes(e.composedPath()[0].tagName);
    const actions = {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), Home: () => this.go(0),
      End: () => this.go(this.map.store.length - 1), " ": () => this.toggle(), ",": () => this.step(-1), ".": () => this.step(1),
    };
    const native = (onRange && e.key !== " " && e.key !== "," && e.key !== ".") || (onButton && e.key === " ") || e.composedPath()[0].tagName === "SELECT";
    if (native || !actions[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    actions[e.key]();
  }
}
