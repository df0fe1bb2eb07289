// Keeps values in the page's address without a new entry in the browser's history: Back leaves the page, it does not
// walk through every step of a run.
//
// A server that was started anew asks to write its own values first thing. It knows nothing of what stands there, so
// it is told instead (`found`), and writes next time. And it hears nothing of an open tab before that tab asks for
// something, so this asks (`back`) as soon as a lost connection is there again: the reader's next click finds all as
// it was.

let writer = null; // the session that last wrote here

export default function address({ data, setStateValue, setTriggerValue }) {
  keep(data, setStateValue);
  return whenConnectedAgain(() => setTriggerValue("back", true));
}

function keep(data, setStateValue) {
  const url = new URL(window.location.href);
  const names = Object.keys(data.values);
  const isNewWriter = writer !== null && writer !== data.writer;
  writer = data.writer;
  if (isNewWriter && names.some((name) => url.searchParams.has(name))) {
    setStateValue("found", Object.fromEntries(names.map((name) => [name, url.searchParams.get(name)])));
    return;
  }
  for (const name of names) {
    if (data.values[name] === null) url.searchParams.delete(name);
    else url.searchParams.set(name, data.values[name]);
  }
  if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
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
