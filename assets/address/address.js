// Keeps values in the page's address without a new entry in the browser's history: Back leaves the page, it does not
// walk through every step of a run.
//
// A server that was started anew asks to write its own values first thing. It knows nothing of what stands there, so
// it is told instead (`found`), and writes next time. It hears of an open tab only when that tab asks for something,
// so this tells it as soon as a lost connection is there again. Until it has heard, the page is as before the loss, and
// a click on it would be lost: it takes none.

const HOLD_MS = 15000; // whatever happens, a page is usable again after so long

let writer = null; // the session that last wrote here
let told = null; // when the server was last told what stands here
let release = null;

export default function address({ data, setStateValue, parentElement }) {
  const names = Object.keys(data.values);
  const tell = () => {
    told = Date.now();
    setStateValue("found", { ...read(names), told });
  };
  const isNewWriter = writer !== null && writer !== data.writer;
  const mustHear = isNewWriter && (told === null || data.heard !== told);
  writer = data.writer;
  if (mustHear && Object.keys(read(names)).length) tell();
  else {
    write(data.values);
    hold(false);
  }
  const stopWatching = whenConnectedAgain(() => {
    hold(true);
    tell();
  });
  return () => {
    stopWatching();
    const host = parentElement.host ?? parentElement;
    if (!host.isConnected) hold(false); // else a newer render of this page has taken over
  };
}

function read(names) {
  const { searchParams } = new URL(window.location.href);
  return Object.fromEntries(names.filter((name) => searchParams.has(name)).map((name) => [name, searchParams.get(name)]));
}

function write(values) {
  const url = new URL(window.location.href);
  for (const [name, value] of Object.entries(values)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
}

function hold(isHeld) {
  clearTimeout(release);
  document.querySelector("[data-testid=stMain]")?.toggleAttribute("inert", isHeld);
  if (isHeld) release = setTimeout(() => hold(false), HOLD_MS);
}

// Streamlit says in this attribute how its connection is. Returns what ends the watch.
function whenConnectedAgain(act) {
  const app = document.querySelector("[data-testid=stApp]");
  const watch = new MutationObserver(() => {
    if (app.dataset.testConnectionState === "CONNECTED") act();
  });
  watch.observe(app, { attributeFilter: ["data-test-connection-state"] });
  return () => watch.disconnect();
}
