// The bar of a tab in a room and its WebSocket: says who the tab is, follows the presenter's page and values, "I'm stuck".
//
// Protocol: views/room/websocket.py. What the tab is in the room is kept in its session storage, so a reload, a lost
// network or a server started anew finds it again. To follow is to do what a step through the browser's history does:
// change the address and let Streamlit read it.

const STORE = "room";
const POLL_MS = 250;
const ACK_TIMEOUT_MS = 2500;
const REFUSALS_TO_SAY = 3;
const JITTER_MS = 400; // a room does not ask for a new page in one and the same moment
const FOLLOW = "follow";
const OWN = "own";

function storedRecord(code) {
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

// The page and the values of an address, without what is one tab's own.
function placeOf(href, privateNames) {
  const url = new URL(href);
  for (const name of privateNames) url.searchParams.delete(name);
  url.searchParams.sort();
  return { path: url.pathname.slice(rootOfApp().pathname.length), query: url.searchParams.toString() };
}

const keyOf = ({ path, query }) => `${path}?${query}`;

class RoomBar {
  constructor(bar) {
    this.bar = bar;
    this.part = (name) => bar.querySelector(`.${name}`);
    bar.setAttribute("aria-label", _("Room"));
    this.part("join").textContent = _("Join");
    this.part("stuck").textContent = _("I'm stuck");
    this.part("qr").setAttribute("aria-label", _("QR code of the link to this room, large"));
    this.state = "waiting";
    this.socket = new ReconnectingSocket({
      onOpen: () => this.introduce(),
      onMessage: (roomState) => this.receive(roomState),
      onLost: () => this.showLost(),
    });
    this.part("mode").onclick = () => this.setMode(this.record.mode === FOLLOW ? OWN : FOLLOW);
    this.part("stuck").onclick = () => this.send({ stuck: !this.roomState?.is_stuck });
    this.part("qr").onclick = () => this.toggleQr();
    this.clock = setInterval(() => this.poll(), POLL_MS);
  }

  // Called at each render of the page.
  update(data, setTrigger) {
    this.data = data;
    this.setTrigger = setTrigger;
    if (data.end_reason) this.forget(data.end_reason);
    else if (data.identity) this.setIdentity(data.identity);
    else this.record = storedRecord(data.code);
    if (data.moved_to === this.navigationId) clearTimeout(this.navigationTimer);
    this.connect();
    this.sendIdentity();
    this.paint();
  }

  stop() {
    clearInterval(this.clock);
    this.disconnect();
  }

  // -- who we are --

  setIdentity(identity) {
    const before = storedRecord(this.data.code);
    const is_same = before?.member === identity.member;
    this.record = { mode: FOLLOW, stamp: "", sent: "", moves: 0, turns: 0, ...(is_same ? before : {}), ...identity, code: this.data.code };
    this.save();
  }

  save() {
    sessionStorage.setItem(STORE, JSON.stringify(this.record));
  }

  forget(why) {
    this.disconnect();
    if (storedRecord(this.data.code)) sessionStorage.removeItem(STORE);
    this.record = null;
    this.roomState = null;
    this.state = "over";
    this.why = why;
    this.writeRoomToUrl(null);
  }

  // A session that ended has lost the tab's identity: it is sent again until the page returns it. After a lost connection
  // that may have happened unnoticed.
  sendIdentity() {
    const isKnown = this.data.identity && !this.wasDisconnected;
    if (isKnown || this.identityTimer || !this.record || this.state !== "open" || !isConnected()) return;
    this.wasDisconnected = false;
    const { code, member, token } = this.record;
    this.setTrigger("identity", { code, member, token });
    this.identityTimer = setTimeout(() => {
      this.identityTimer = null;
      this.sendIdentity();
    }, ACK_TIMEOUT_MS);
  }

  // Streamlit's connection is here again: so is the network.
  reconnect() {
    this.wasDisconnected = true;
    this.connect();
  }

  // -- the WebSocket --

  connect() {
    if (this.record) this.socket.open(this.data.socket);
  }

  introduce() {
    this.isFresh = true;
    const { member, name, token, settings } = this.record;
    this.send({ member, name, token, settings });
  }

  showLost() {
    const isRefused = this.state === "waiting" && this.socket.refusals >= REFUSALS_TO_SAY && isConnected();
    if (this.state === "open") this.state = "lost";
    else if (isRefused) this.state = "refused";
    this.paint();
  }

  disconnect() {
    clearTimeout(this.identityTimer);
    clearTimeout(this.followTimer);
    clearTimeout(this.navigationTimer);
    this.identityTimer = this.followTimer = null;
    this.socket.close();
  }

  send(message) {
    this.socket.send(message);
  }

  receive(roomState) {
    this.state = roomState.state;
    if (roomState.state === "over" || roomState.state === "stranger") {
      this.forget(roomState.why);
      this.setTrigger("identity", { code: this.data.code, gone: true });
    } else if (roomState.state === "open") {
      this.socket.resetDelay();
      this.roomState = roomState;
      this.sendIdentity();
      if (this.isFresh && roomState.last_move !== this.record.moves) this.record.sent = ""; // a move was lost with the last connection
      this.isFresh = false;
      this.poll();
    }
    this.paint();
  }

  // -- the address --

  poll() {
    if (!this.record) return;
    this.writeRoomToUrl(this.record.code);
    const wasConnected = this.isConnected ?? true;
    this.isConnected = isConnected();
    if (this.isConnected && !wasConnected) this.reconnect();
    if (this.state !== "open" || !this.isConnected) return;
    this.sendIdentity();
    if (this.record.token) this.sendPlace();
    else if (this.record.mode === FOLLOW) this.follow();
  }

  writeRoomToUrl(code) {
    const url = new URL(window.location.href);
    if (code === null) for (const name of ["room", "follow"]) url.searchParams.delete(name);
    else url.searchParams.set("room", code);
    if (url.href !== window.location.href) window.history.replaceState(window.history.state, "", url);
  }

  // The presenter's browser says where it is: after a move, or when the room does not know.
  sendPlace() {
    const place = placeOf(window.location.href, this.data.private_names);
    if (this.roomState.place && keyOf(place) === this.record.sent) return;
    if (this.roomState.place && keyOf(this.roomState.place) === keyOf(place) && !this.record.sent) return;
    this.record.sent = keyOf(place);
    this.record.moves += 1;
    this.save();
    this.send({ place, number: this.record.moves });
  }

  follow() {
    const { place, stamp } = this.roomState;
    if (!place) return;
    const isElsewhere = placeOf(window.location.href, this.data.private_names).path !== place.path;
    if (this.record.stamp !== stamp) {
      this.followTimer ??= setTimeout(() => this.followNow(), isElsewhere ? Math.random() * JITTER_MS : 0);
    } else if (isElsewhere) {
      this.setMode(OWN); // the reader took another page
    }
  }

  followNow() {
    this.followTimer = null;
    const { record, roomState, state } = this;
    if (state !== "open" || !isConnected()) return; // `poll` comes back to it
    if (record?.mode === FOLLOW && record.stamp !== roomState.stamp) this.followTo(roomState.place, roomState.stamp);
  }

  followTo(place, stamp) {
    this.record.stamp = stamp;
    this.save();
    if (keyOf(placeOf(window.location.href, this.data.private_names)) === keyOf(place)) return;
    this.record.turns += 1; // who comes back to a place followed before turns to it once more
    this.save();
    this.navigationId = `${stamp}.${this.record.turns}`;
    this.navigateTo(place, ACK_TIMEOUT_MS);
  }

  navigateTo(place, delay) {
    const url = new URL(place.path || ".", rootOfApp());
    url.search = place.query;
    url.searchParams.set("room", this.record.code);
    url.searchParams.set("follow", this.navigationId);
    if (url.href !== window.location.href) window.history.pushState({}, "", url);
    window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
    this.retryUntilAcknowledged(place, delay, delay);
  }

  // Until Python says that it has turned to this place: a message is lost when the network goes in the same moment.
  retryUntilAcknowledged(place, wait, delay) {
    clearTimeout(this.navigationTimer);
    this.navigationTimer = setTimeout(() => {
      if (this.record?.mode !== FOLLOW || this.data.moved_to === this.navigationId) return;
      if (isAtRest()) this.navigateTo(place, delay * 2);
      else this.retryUntilAcknowledged(place, POLL_MS, delay);
    }, wait);
  }

  setMode(mode) {
    this.record.mode = mode;
    if (mode === FOLLOW) this.record.stamp = "";
    this.save();
    this.poll();
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
    this.part("qr").hidden = !(record?.token && this.data.qr && this.roomState?.people?.num_joined);
    if (this.data.qr && !this.part("qr").hidden) this.part("qr").firstChild.src = this.data.qr; // once people have joined; before, the page shows it
    this.put("code", _("Room {code}", { code: this.data.shown }));
    this.put("words", this.words(isInvited));
    this.part("join").hidden = !isInvited;
    this.part("join").href = new URL(`room?room=${encodeURIComponent(this.data.code)}`, rootOfApp());
    this.part("mode").hidden = !isAttendee;
    this.part("mode").textContent = record?.mode === OWN ? _("Back to the presenter") : _("Explore on my own");
    this.part("stuck").hidden = !isAttendee;
    this.part("stuck").disabled = this.state !== "open";
    this.part("stuck").setAttribute("aria-pressed", String(Boolean(this.roomState?.is_stuck)));
  }

  toggleQr() {
    const isLarge = this.part("qr").getAttribute("aria-expanded") === "true";
    this.part("qr").setAttribute("aria-expanded", String(!isLarge));
  }

  put(name, text) {
    const node = this.part(name);
    if (node.textContent !== text) node.textContent = text;
  }

  words(isInvited) {
    if (isInvited) return _("You are invited to this room.");
    if (this.state === "over") return this.why || _("You are no longer in this room.");
    if (this.state === "refused") return _("The server refuses this room's WebSocket, or a proxy in front of it does (docs/deploying.md). Prompts can be sent; this tab does not follow the presenter.");
    if (this.state === "lost") return _("The connection is lost. Reconnecting.");
    if (this.state === "missing") return _("This room is not open on this server now. It reopens when its presenter reconnects.");
    if (this.state !== "open") return _("Connecting");
    if (this.record.token) return presenterWords(this.roomState.people);
    return this.record.mode === OWN ? _("You are exploring on your own.") : _("You are following the presenter.");
  }
}

function presenterWords({ num_joined, num_here, num_stuck }) {
  const counts = { num_here, num_joined, num_stuck };
  return _("You are presenting. {num_here} of {num_joined} attendees are here. Stuck: {num_stuck}.", counts);
}

const mounted = new WeakMap();

export default function roomBar({ data, parentElement, setTriggerValue }) {
  let bar = mounted.get(parentElement);
  if (!bar) {
    bar = new RoomBar(parentElement.querySelector(".bar"));
    mounted.set(parentElement, bar);
  }
  bar.update(data, setTriggerValue);
  return () => {
    const host = parentElement.host ?? parentElement;
    if (host.isConnected) return; // a superseded render cleans up while the bar is still on the page
    bar.stop();
    mounted.delete(parentElement);
  };
}
