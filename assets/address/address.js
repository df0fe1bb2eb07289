// Keeps values in the page's address without a new entry in the browser's history: Back leaves the page, it does not
// walk through every step of a run.
//
// A session that begins under an open tab asks to write its own values first thing. It knows nothing of what stands
// there, so it is told instead (`found`, meant for that session alone, `to`), until it has heard, and writes next time.
// (A session would else take what the tab told an earlier one.)

let writer = null; // the session that last wrote here

export default function address({ data, setStateValue, parentElement }) {
  const names = Object.keys(data.values);
  const isNewWriter = writer !== null && writer !== data.writer;
  writer = data.writer;
  if (isNewWriter && Object.keys(read(names)).length) {
    tellUntilHeard("address", (told) => setStateValue("found", { ...read(names), to: data.writer, ...told }));
  } else {
    write(data.values);
    if (data.heard === told) rest("address"); // else this is the picture from before, drawn once more
  }
  return () => {
    const host = parentElement.host ?? parentElement;
    if (!host.isConnected) rest("address"); // else a newer render of this page has taken over
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
