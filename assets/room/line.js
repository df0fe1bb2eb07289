// A tab's line to its room: it says who it is, follows the presenter's page and values, says "I'm stuck".
//
// Protocol: views/room/lines.py. What the tab is in the room is kept in its session storage, so a reload, a lost
// network or a server started anew finds it again. To follow is to do what a step through the browser's history does:
// change the address and let Streamlit read it.

const STORE = "room";
const PRIVATE = ["room", "follow", "engine", "run"]; // names in an address that are one tab's own
const RETRY_MS = [300, 700, 1500, 3000, 5000];
const LOOK_MS = 250;
const WAIT_MS = 2500;
const SPREAD_MS = 400; // a room does not ask for a new page in one and the same moment
const FOLLOW = "follow";
const OWN = "own";

function saved(code) {
  try {
    const record = JSON.parse(sessionStorage.getItem(STORE));
    return record?.code === code ? record : null;
  } catch {
    return null;
  }
}

function rootOfApp() {
  return new URL(".", document.baseURI);
}

// Streamlit says in these attributes how its connection and its script are.
function isConnected() {
  return document.querySelector("[data-testid=stApp]")?.dataset.testConnectionState === "CONNECTED";
}

function isAtRest() {
  return isConnected() && document.querySelector("[data-testid=stApp]").dataset.testScriptState === "notRunning";
}

// The page and the values of an address, without what is one tab's own.
function placeOf(href) {
  const url = new URL(href);
  for (const name of PRIVATE) url.searchParams.delete(name);
  url.searchParams.sort();
  return { path: url.pathname.slice(rootOfApp().pathname.length), query: url.searchParams.toString() };
}

const keyOf = ({ path, query }) => `${path}?${query}`;

class RoomLine {
  constructor(bar) {
    this.bar = bar;
    this.part = (name) => bar.querySelector(`.${name}`);
    this.failures = 0;
    this.state = "waiting";
    this.part("mode").onclick = () => this.setMode(this.record.mode === FOLLOW ? OWN : FOLLOW);
    this.part("stuck").onclick = () => this.say({ stuck: !this.news?.is_stuck });
    this.clock = setInterval(() => this.look(), LOOK_MS);
  }

  // Called at each render of the page.
  update(data, tell) {
    this.data = data;
    this.tell = tell;
    if (data.why_over) this.forget(data.why_over);
    else if (data.identity) this.beKnown(data.identity);
    else this.record = saved(data.code);
    if (data.moved_to === this.turn) clearTimeout(this.turning);
    this.connect();
    this.introduce();
    this.paint();
  }

  stop() {
    clearInterval(this.clock);
    this.hangUp();
  }

  // -- who we are --

  beKnown(identity) {
    const before = saved(this.data.code);
    const is_same = before?.member === identity.member;
    this.record = { mode: FOLLOW, stamp: "", sent: "", moves: 0, turns: 0, ...(is_same ? before : {}), ...identity, code: this.data.code };
    this.save();
  }

  save() {
    sessionStorage.setItem(STORE, JSON.stringify(this.record));
  }

  forget(why) {
    this.hangUp();
    if (saved(this.data.code)) sessionStorage.removeItem(STORE);
    this.record = null;
    this.news = null;
    this.state = "over";
    this.why = why;
    this.putInAddress(null);
  }

  // Python forgets a tab whose session ended; it is told again who we are until it has heard. After a lost connection it
  // may have done so without our knowing.
  introduce() {
    const isKnown = this.data.identity && !this.wasAway;
    if (isKnown || this.introduction || !this.record || this.state !== "open" || !isConnected()) return;
    this.wasAway = false;
    const { code, member, token } = this.record;
    this.tell("identity", { code, member, token });
    this.introduction = setTimeout(() => {
      this.introduction = null;
      this.introduce();
    }, WAIT_MS);
  }

  // Streamlit's connection is here again: so is the network.
  comeBack() {
    this.wasAway = true;
    if (this.socket) return;
    clearTimeout(this.retry);
    this.connect();
  }

  // -- the line --

  connect() {
    if (!this.record || this.socket) return;
    const url = new URL(this.data.socket, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onopen = () => {
      this.isFresh = true;
      const { member, name, token, settings } = this.record;
      socket.send(JSON.stringify({ member, name, token, settings }));
    };
    socket.onmessage = (e) => this.hear(JSON.parse(e.data));
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (this.state === "open") this.state = "lost";
      this.paint();
      const patience = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)];
      this.retry = setTimeout(() => this.connect(), patience * (0.7 + 0.6 * Math.random()));
    };
  }

  hangUp() {
    clearTimeout(this.retry);
    clearTimeout(this.introduction);
    clearTimeout(this.departure);
    clearTimeout(this.turning);
    this.introduction = this.departure = null;
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  say(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  hear(news) {
    this.state = news.state;
    if (news.state === "over" || news.state === "stranger") {
      this.forget(news.why);
      this.tell("identity", { code: this.data.code, gone: true });
    } else if (news.state === "open") {
      this.failures = 0;
      this.news = news;
      this.introduce();
      if (this.isFresh && news.heard !== this.record.moves) this.record.sent = ""; // a move was lost with the last line
      this.isFresh = false;
      this.look();
    }
    this.paint();
  }

  // -- the address --

  look() {
    if (!this.record) return;
    this.putInAddress(this.record.code);
    const wasConnected = this.isConnected ?? true;
    this.isConnected = isConnected();
    if (this.isConnected && !wasConnected) this.comeBack();
    if (this.state !== "open" || !this.isConnected) return;
    this.introduce();
    if (this.record.token) this.tellPlace();
    else if (this.record.mode === FOLLOW) this.follow();
  }

  putInAddress(code) {
    const url = new URL(window.location.href);
    if (code === null) for (const name of ["room", "follow"]) url.searchParams.delete(name);
    else url.searchParams.set("room", code);
    if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
  }

  // The presenter's browser says where it is: after a move, or when the room does not know.
  tellPlace() {
    const place = placeOf(window.location.href);
    if (this.news.place && keyOf(place) === this.record.sent) return;
    if (this.news.place && keyOf(this.news.place) === keyOf(place) && !this.record.sent) return;
    this.record.sent = keyOf(place);
    this.record.moves += 1;
    this.save();
    this.say({ place, number: this.record.moves });
  }

  follow() {
    const { place, stamp } = this.news;
    if (!place) return;
    const isElsewhere = placeOf(window.location.href).path !== place.path;
    if (this.record.stamp !== stamp) {
      this.departure ??= setTimeout(() => this.depart(), isElsewhere ? Math.random() * SPREAD_MS : 0);
    } else if (isElsewhere) {
      this.setMode(OWN); // the reader took another page
    }
  }

  depart() {
    this.departure = null;
    const { record, news, state } = this;
    if (state !== "open" || !isConnected()) return; // `look` comes back to it
    if (record?.mode === FOLLOW && record.stamp !== news.stamp) this.goTo(news.place, news.stamp);
  }

  goTo(place, stamp) {
    this.record.stamp = stamp;
    this.save();
    if (keyOf(placeOf(window.location.href)) === keyOf(place)) return;
    this.record.turns += 1; // who comes back to a place followed before turns to it once more
    this.save();
    this.turn = `${stamp}.${this.record.turns}`;
    this.turnTo(place, WAIT_MS);
  }

  turnTo(place, patience) {
    const url = new URL(place.path || ".", rootOfApp());
    url.search = place.query;
    url.searchParams.set("room", this.record.code);
    url.searchParams.set("follow", this.turn);
    if (url.href !== window.location.href) window.history.pushState({}, "", url);
    window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
    this.seeToIt(place, patience, patience);
  }

  // Until Python says that it has turned to this place: a message is lost when the network goes in the same moment.
  seeToIt(place, delay, patience) {
    clearTimeout(this.turning);
    this.turning = setTimeout(() => {
      if (this.record?.mode !== FOLLOW || this.data.moved_to === this.turn) return;
      if (isAtRest()) this.turnTo(place, patience * 2);
      else this.seeToIt(place, LOOK_MS, patience);
    }, delay);
  }

  setMode(mode) {
    this.record.mode = mode;
    if (mode === FOLLOW) this.record.stamp = "";
    this.save();
    this.look();
    this.paint();
  }

  // -- what is seen --

  paint() {
    const { record } = this;
    const isAttendee = Boolean(record && !record.token);
    const isInvited = !record && this.state !== "over" && !this.data.is_room_page;
    this.bar.hidden = !record && !isInvited && this.state !== "over";
    this.bar.dataset.state = this.state;
    this.bar.dataset.mode = record?.token ? "present" : (record?.mode ?? "");
    this.put("code", `Room ${this.data.shown}`);
    this.put("words", this.words(isInvited));
    this.part("join").hidden = !isInvited;
    this.part("join").href = new URL(`room?room=${encodeURIComponent(this.data.code)}`, rootOfApp());
    this.part("mode").hidden = !isAttendee;
    this.part("mode").textContent = record?.mode === OWN ? "Back to the presenter" : "Explore on my own";
    this.part("stuck").hidden = !isAttendee;
    this.part("stuck").disabled = this.state !== "open";
    this.part("stuck").setAttribute("aria-pressed", String(Boolean(this.news?.is_stuck)));
  }

  put(name, text) {
    const node = this.part(name);
    if (node.textContent !== text) node.textContent = text;
  }

  words(isInvited) {
    if (isInvited) return "You are invited to this room.";
    if (this.state === "over") return this.why || "You are no longer in this room.";
    if (this.state === "lost") return "The connection is lost. It is being looked for.";
    if (this.state === "missing") return "This room is not open on this server now. It comes back with its presenter.";
    if (this.state !== "open") return "Connecting";
    if (this.record.token) return presenterWords(this.news.people);
    return this.record.mode === OWN ? "You explore on your own." : "You follow the presenter.";
  }
}

function presenterWords({ num_joined, num_here, num_stuck }) {
  return `You present. ${num_here} of ${num_joined} attendees are here. Stuck: ${num_stuck}.`;
}

const mounted = new WeakMap();

export default function roomLine({ data, parentElement, setTriggerValue }) {
  let line = mounted.get(parentElement);
  if (!line) {
    line = new RoomLine(parentElement.querySelector(".bar"));
    mounted.set(parentElement, line);
  }
  line.update(data, setTriggerValue);
  return () => {
    const host = parentElement.host ?? parentElement;
    if (host.isConnected) return; // a superseded render cleans up while the bar is still on the page
    line.stop();
    mounted.delete(parentElement);
  };
}
