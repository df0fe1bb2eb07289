// Before address.js and wake.js: the server is told something until it has heard. What a page shows from before the
// server's restart takes no click meanwhile: it would be lost.

const HOLD_MS = 30000; // whatever happens, a page is usable again after so long
const REPEAT_MS = 1500; // and twice as long each time: what is told interrupts the script that is to hear it

let told = null; // when the server was last told
let tellings = 0;
let repetition = null;
let release = null;
let left = null; // the control of the page that lost the focus last

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

function pageBody() {
  return document.querySelector("[data-testid=stMain]");
}

// Each script holds for a reason of its own; the page is free when none is left.
function hold(reason, isHeld) {
  clearTimeout(release);
  const main = pageBody();
  if (!main) return;
  const reasons = new Set((main.dataset.held ?? "").split(" ").filter(Boolean));
  if (isHeld) reasons.add(reason);
  else reasons.delete(reason);
  main.dataset.held = [...reasons].join(" ");
  const wasHeld = main.inert;
  main.inert = reasons.size > 0;
  if (wasHeld && !main.inert) giveFocusBack();
  if (isHeld) release = setTimeout(() => hold(reason, false), HOLD_MS);
}

// To the control that had it before the page was held, or before a dialog said that the connection is lost.
function giveFocusBack() {
  if (document.activeElement === document.body) left?.focus({ preventScroll: true });
}

document.addEventListener("focusout", (e) => {
  if (pageBody()?.contains(e.target)) [left] = e.composedPath();
});
