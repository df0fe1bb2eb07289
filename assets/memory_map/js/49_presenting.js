// While a page is presented (assets/present/present.js), its map shows less around the picture, in larger type, and walks
// through its frames at arrow keys that are pressed anywhere on the page.

const STEP_EVENT = "memory-map:step";
const PRESENTING = "presenting"; // a class of the page's body

class Presenting {
  constructor(map) {
    this.map = map;
    this.onStep = (e) => this.step(e);
    document.addEventListener(STEP_EVENT, this.onStep);
  }

  stop() {
    document.removeEventListener(STEP_EVENT, this.onStep);
  }

  // Before each layout.
  paint() {
    const isOn = document.body.classList.contains(PRESENTING);
    if (this.map.root.classList.contains(PRESENTING) === isOn) return;
    this.map.root.classList.toggle(PRESENTING, isOn);
    this.map.available.reset();
  }

  // The first map that has a frame there takes the step.
  step(e) {
    const { map } = this;
    const next = map.index + e.detail.by;
    if (e.defaultPrevented || !map.withControls || !map.root.clientWidth || next < 0 || next >= map.store.length) return;
    e.preventDefault();
    map.controls.step(e.detail.by);
  }
}
