// A server that was started anew hears of an open tab only when that tab asks for something, and a click on a fragment
// that it does not know yet is lost. So a connection that is there again asks for the whole page, until that comes.

let writer = null; // the session that last drew this page
let stopWatching = () => {};

export default function wake({ data, setStateValue, parentElement }) {
  if (data.writer !== writer || data.heard === told) rest("wake"); // else this is the picture from before, drawn once more
  writer = data.writer;
  stopWatching();
  stopWatching = whenConnectedAgain(() => tellUntilHeard("wake", (told) => setStateValue("told", told)));
  return () => {
    const host = parentElement.host ?? parentElement;
    if (host.isConnected) return; // a newer render of this page has taken over
    stopWatching();
    rest("wake");
  };
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
