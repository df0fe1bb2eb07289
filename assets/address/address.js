// Keeps values in the page's address without a new entry in the browser's history: Back leaves the page, it does not
// walk through every step of a run.

export default function address({ data }) {
  const url = new URL(window.location.href);
  for (const [name, value] of Object.entries(data.values)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
}
