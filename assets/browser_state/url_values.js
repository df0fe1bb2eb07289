// Writes values into the query string without a new entry in the browser's history: Back leaves the page, it does not
// walk through every step of a run.
//
// A session that begins under an open tab would overwrite what an earlier session has written there. So it is sent the
// values first (`found`, with the session it is meant for in `to`) until it acknowledges them, and writes in the next
// run.

let session = null; // the session that last wrote here

export default function urlValues({ data, setStateValue, parentElement }) {
  const names = Object.keys(data.values);
  const isNewSession = session !== null && session !== data.session;
  session = data.session;
  if (isNewSession && Object.keys(read(names)).length) {
    const send = (report) => setStateValue("found", { ...read(names), to: data.session, ...report });
    sendUntilAcknowledged("url_values", send);
  } else {
    write(data.values);
    if (data.acknowledged === lastSent) stopSending("url_values"); // else this is a render from before the report
  }
  return () => {
    const host = parentElement.host ?? parentElement;
    if (!host.isConnected) stopSending("url_values"); // else a newer render of this page has taken over
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
