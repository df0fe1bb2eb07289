// Before address.js and wake.js: the server is told something until it has heard. What a page shows from before the
// server's restart takes no click meanwhile: it would be lost.

const HOLD_MS = 30000; // whatever happens, a page is usable again after so long
const REPEAT_MS = 1500; // and twice as long each time: what is told interrupts the script that is to hear it

let told = null; // when the server was last told
let tellings = 0;
let repetition = null;
let release = null;

function tellUntilHeard(reason, say) {
  rest(reason);
  told = Date.now();
  hold(reason, true);
  repeat(say, REPEAT_MS);
}

function repeat(say, patience) {
  say({ told, tellings: (tellings += 1) });
  repetition = setTimeout(() => repeat(say, 2 * patience), patience);
}

function rest(reason) {
  clearTimeout(repetition);
  hold(reason, false);
}

// Each script holds for a reason of its own; the page is free when none is left.
function hold(reason, isHeld) {
  clearTimeout(release);
  const main = document.querySelector("[data-testid=stMain]");
  if (!main) return;
  const reasons = new Set((main.dataset.held ?? "").split(" ").filter(Boolean));
  if (isHeld) reasons.add(reason);
  else reasons.delete(reason);
  main.dataset.held = [...reasons].join(" ");
  if (reasons.size > 0 !== main.inert) turn(main);
  if (isHeld) release = setTimeout(() => hold(reason, false), HOLD_MS);
}

// Who was at a control when the page was held finds it again: an inert page has no focus.
function turn(main) {
  if (!main.inert) main.focusBefore = focused();
  main.inert = !main.inert;
  if (!main.inert && document.activeElement === document.body) main.focusBefore?.focus({ preventScroll: true });
}

// Also within a component, which has a document of its own.
function focused(root = document) {
  const node = root.activeElement;
  return node?.shadowRoot?.activeElement ? focused(node.shadowRoot) : node;
}
