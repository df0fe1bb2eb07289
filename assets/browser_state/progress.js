// What a reader has done, lesson by lesson, kept in this browser alone. Style sheets show it (views/progress.py), by
// attributes of the page's root that list keys of lessons: <html data-done="growth sharing" data-played="growth" ...>.

const STORE = "lessons"; // { key of a lesson: [what was done: "answered", "played"] }
const MILESTONES = ["answered", "played"];
const PLAYED_EVENT = "memory-map:last-frame";

let kept = {}; // where the browser allows no storage, until the tab is closed
let lesson = null; // the lesson on the page
let forgotten = null;

export default function progress({ data }) {
  ({ lesson } = data);
  if (data.forget && data.forget !== forgotten) keep({});
  forgotten = data.forget;
  if (data.is_answered) note("answered");
  paint();
}

function note(milestone) {
  const all = read();
  if (!lesson || all[lesson]?.includes(milestone)) return;
  keep({ ...all, [lesson]: [...(all[lesson] ?? []), milestone] });
  paint();
}

function read() {
  try {
    const stored = Object.entries(JSON.parse(localStorage.getItem(STORE)) ?? {});
    return Object.fromEntries(stored.filter(([, milestones]) => Array.isArray(milestones)));
  } catch {
    return kept;
  }
}

function keep(all) {
  kept = all;
  try {
    localStorage.setItem(STORE, JSON.stringify(all));
  } catch {
    // a private window may refuse
  }
}

function paint() {
  const all = Object.entries(read());
  const root = document.documentElement;
  root.dataset.done = all.map(([key]) => key).join(" ");
  for (const milestone of MILESTONES) root.dataset[milestone] = all.filter(([, milestones]) => milestones.includes(milestone)).map(([key]) => key).join(" ");
}

document.addEventListener(PLAYED_EVENT, () => note("played"));
window.addEventListener("storage", paint); // another tab of this browser
