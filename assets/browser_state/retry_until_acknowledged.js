// Put before url_values.js and reconnect.js: a report is sent to the server again until a script run acknowledges it.
// Meanwhile the page is inert: a click on what an older session has drawn would be lost.

const MAX_INERT_MS = 30000; // whatever happens, the page is usable again after so long
const FIRST_RETRY_MS = 1500; // then twice as long each time: a report interrupts the script run that is to receive it

let lastSent = null; // when the latest report was first sent: its id
let attempts = 0;
let retryTimer = null;
let inertTimer = null;
let lastFocused = null; // the control of the page that lost the focus last

function sendUntilAcknowledged(reason, send) {
  stopSending(reason);
  lastSent = Date.now();
  setInert(reason, true);
  retry(send, FIRST_RETRY_MS);
}

function retry(send, delay) {
  send({ sent: lastSent, attempts: (attempts += 1) }); // Streamlit ignores a value that has not changed
  retryTimer = setTimeout(() => retry(send, 2 * delay), delay);
}

function stopSending(reason) {
  clearTimeout(retryTimer);
  setInert(reason, false);
}

function pageBody() {
  return document.querySelector("[data-testid=stMain]");
}

// Each script has a reason of its own; the page is usable when none is left.
function setInert(reason, isInert) {
  clearTimeout(inertTimer);
  const main = pageBody();
  if (!main) return;
  const reasons = new Set((main.dataset.inertFor ?? "").split(" ").filter(Boolean));
  if (isInert) reasons.add(reason);
  else reasons.delete(reason);
  main.dataset.inertFor = [...reasons].join(" ");
  const wasInert = main.inert;
  main.inert = reasons.size > 0;
  if (wasInert && !main.inert) restoreFocus();
  if (isInert) inertTimer = setTimeout(() => setInert(reason, false), MAX_INERT_MS);
}

// To the control that had it before the page was inert, or before a dialog said that the connection is lost.
function restoreFocus() {
  if (document.activeElement === document.body) lastFocused?.focus({ preventScroll: true });
}

document.addEventListener("focusout", (e) => {
  if (pageBody()?.contains(e.target)) [lastFocused] = e.composedPath();
});
