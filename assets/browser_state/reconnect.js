// A restarted server learns of an open tab only when that tab asks for something, and a click on a fragment that the
// new session does not know is lost. So a tab that is connected again asks for a run of the whole page.

let session = null; // the session that last drew this page
let stopWatching = () => {};

export default function reconnect({ data, setStateValue, parentElement }) {
  // Otherwise this is a render of the page from before the connection was lost.
  if (data.session !== session || data.acknowledged === lastSent) stopSending("reconnect");
  session = data.session;
  stopWatching();
  stopWatching = onReconnect(() => sendUntilAcknowledged("reconnect", (report) => setStateValue("sent", report)));
  return () => {
    const host = parentElement.host ?? parentElement;
    if (host.isConnected) return; // a newer render of this page has taken over
    stopWatching();
    stopSending("reconnect");
  };
}

// Returns a function that ends the watch.
function onReconnect(act) {
  const watch = new MutationObserver(() => {
    if (isConnected()) act();
  });
  watch.observe(streamlitApp(), { attributeFilter: ["data-test-connection-state"] });
  return () => watch.disconnect();
}
