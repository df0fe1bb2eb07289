// Presenting: the page as picture, one sentence and slider, in large type. A button and the key P begin it, a button, P
// and Escape end it. Arrow keys walk through the frames, and at either end to the page before or after. What is left of
// a page is said in assets/page/style.css, by the class that is put on the body here.

const CLASS = "presenting";
const STORE = "presenting"; // for this tab, so that a reload goes on presenting
const STEP_EVENT = "memory-map:step";
const TYPED_INTO = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable=true]";
const HAS_ARROWS = `input, [role=slider], [role=tab], [role=option], [role=combobox], [data-kind], ${TYPED_INTO}`;

class Present {
  constructor(root) {
    this.root = root;
    this.isOn = sessionStorage.getItem(STORE) === "yes";
    for (const name of ["enter", "strip", "title", "previous", "next", "leave"]) this[name] = root.querySelector(`.${name}`);
    this.enter.onclick = () => this.turnOn(true);
    this.leave.onclick = () => this.turnOn(false);
    this.previous.onclick = () => this.turnTo(this.data.previous);
    this.next.onclick = () => this.turnTo(this.data.next);
    this.onKey = (e) => this.key(e);
    document.addEventListener("keydown", this.onKey, true); // before the parts of the page that know arrow keys themselves
  }

  // Called at each render of the page.
  update(data) {
    this.data = data;
    for (const name of ["enter", "leave"]) this[name].textContent = data.words[name];
    for (const name of ["previous", "next"]) this.paintTurn(this[name], data[name]);
    this.strip.setAttribute("aria-label", data.words.strip);
    this.title.textContent = data.title;
    this.paint();
  }

  paintTurn(button, place) {
    button.hidden = !place;
    if (!place) return;
    button.querySelector(".words").textContent = button.title = place.label;
    button.setAttribute("aria-label", place.label);
  }

  stop() {
    document.removeEventListener("keydown", this.onKey, true); // the class stays: the next page goes on
  }

  turnOn(isOn) {
    const hadFocus = this.root.contains(this.root.getRootNode().activeElement);
    this.isOn = isOn;
    sessionStorage.setItem(STORE, isOn ? "yes" : "no");
    this.paint();
    if (hadFocus) (isOn ? this.leave : this.enter).focus();
  }

  paint() {
    const isOn = this.isOn && this.data.has_picture;
    this.enter.hidden = isOn || !this.data.has_picture;
    this.strip.hidden = !isOn;
    if (document.body.classList.contains(CLASS) === isOn) return;
    document.body.classList.toggle(CLASS, isOn);
    window.dispatchEvent(new Event("resize")); // pictures take the room there is now
  }

  key(e) {
    const at = e.composedPath()[0];
    if (!this.data.has_picture || e.ctrlKey || e.metaKey || e.altKey || at.matches?.(TYPED_INTO)) return;
    const isArrow = e.key === "ArrowLeft" || e.key === "ArrowRight";
    if (e.key === "p" || e.key === "P") this.turnOn(!this.isOn);
    else if (!this.isOn) return;
    else if (e.key === "Escape") this.turnOn(false);
    else if (isArrow && (at.matches?.(".mm .range") || !at.closest?.(HAS_ARROWS))) this.walk(e.key === "ArrowRight" ? 1 : -1);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  // A map on the page that has a frame there takes the step; else the page is turned.
  walk(by) {
    const step = new CustomEvent(STEP_EVENT, { detail: { by }, cancelable: true });
    if (!document.dispatchEvent(step) || this.data.is_live) return;
    this.turnTo(by > 0 ? this.data.next : this.data.previous);
  }

  turnTo(place) {
    if (!place) return;
    const { pathname } = new URL(place.path || ".", document.baseURI);
    const links = [...document.querySelectorAll("[data-testid=stSidebarNav] a")];
    links.find((link) => new URL(link.href).pathname === pathname)?.click();
  }
}

const mounted = new WeakMap();

export default function present({ data, parentElement }) {
  let one = mounted.get(parentElement);
  if (!one) {
    one = new Present(parentElement.querySelector(".present"));
    mounted.set(parentElement, one);
  }
  one.update(data);
  return () => {
    const host = parentElement.host ?? parentElement;
    if (host.isConnected) return; // a superseded render cleans up while the buttons are still on the page
    one.stop();
    mounted.delete(parentElement);
  };
}
