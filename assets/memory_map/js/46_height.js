// How many pixels the picture may be high, so that the whole map is in view at once.

const LEAST_PICTURE = 120;
const LEAST_OF_TWO = 80; // where two maps share the window
const LEAST_SHARE = 0.45; // a map further down than this is scrolled to: it has the viewport below the page's header
const HEADER = 48;
const MARGIN = 10; // below the map, where the page does not say `--map-bottom`
const WIDE = 1024; // from here on a page has controls beside the map, as in assets/page/style.css

class AvailableHeight {
  constructor(map) {
    this.map = map;
    this.readoutHigh = 24; // one line of it
    this.around = 0; // what the controls and words took at most, so that the picture holds still from frame to frame
  }

  reset() {
    this.around = 0;
  }

  // Pixels for the picture itself. `--map-top` is where a map that stays in view begins, `--map-bottom`
  // what the page needs below it (assets/page/style.css).
  forPicture(width, style) {
    if (width !== this.width) this.reset();
    this.width = width;
    this.around = Math.max(this.around, this.measureAround());
    const least = this.map.share < 1 ? LEAST_OF_TWO : LEAST_PICTURE;
    return Math.max(least, this.forMap(style) - this.around);
  }

  // Pixels for the map with its controls and words. One that follows another has what that one left.
  forMap(style) {
    const whole = window.innerHeight - this.top(style) - this.bottom(style);
    if (window.innerWidth < WIDE || this.map.share === 1) return whole;
    const leader = this.map.follows && leaderOf(this.map.follows);
    return leader ? whole - leader.root.offsetHeight - MARGIN : whole * this.map.share;
  }

  hasChanged() {
    return this.measureAround() > this.around + 1;
  }

  measureAround() {
    const { above, below, readout, captions, dataTables, follows, share } = this.map;
    const boxes = [above, below];
    if (window.innerWidth >= WIDE) boxes.push(captions.box);
    if (share < 1 && !follows) boxes.push(dataTables.box); // the next map comes below
    const spilled = Math.max(0, readout.scrollHeight - this.readoutHigh); // what is pointed at moves nothing
    return boxes.reduce((sum, box) => sum + box.offsetHeight, -spilled);
  }

  bottom(style) {
    return parseFloat(style.getPropertyValue("--map-bottom")) || MARGIN;
  }

  top(style) {
    const fixed = parseFloat(style.getPropertyValue("--map-top"));
    if (fixed) return fixed;
    const scroller = document.querySelector("[data-testid=stMain]") ?? document.scrollingElement;
    const top = this.map.root.getBoundingClientRect().top + scroller.scrollTop;
    return top < window.innerHeight * LEAST_SHARE ? top : HEADER;
  }
}
