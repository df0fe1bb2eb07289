// Live frames over a WebSocket. The map says what it has, the server sends what it lacks; so a lost connection costs nothing.
//
//   we send      {"trace_id": ..., "have": number of messages}     on every connection
//   it sends     {"trace_id": ..., "from": number, "frames": [...]} whenever there are more
//
// Where the WebSocket is refused while plain requests come through (a proxy that does not know of it), the same frames
// are fetched once a second, and a line says so, until the WebSocket opens.

const POLL_MS = 1000;
const REFUSALS_BEFORE_POLLING = 2;

class LiveFrames {
  constructor(map) {
    this.map = map;
    this.path = null;
    this.socket = new ReconnectingSocket({
      onOpen: () => {
        this.stopPolling();
        this.socket.resetDelay();
        this.socket.send(this.greeting());
      },
      onMessage: (message) => map.takeLive(message),
      onLost: () => {
        if (this.socket.refusals >= REFUSALS_BEFORE_POLLING && !this.polling) this.poll();
      },
    });
  }

  // Follow the given path (null: none). The same path again changes nothing.
  follow(path) {
    if (path === this.path) return;
    this.stop();
    this.path = path;
    if (path) this.socket.open(path);
  }

  stop() {
    this.path = null;
    this.stopPolling();
    this.socket.close();
  }

  greeting() {
    return { trace_id: this.map.traceId, have: this.map.store.numMessages };
  }

  // -- plain requests instead --

  poll() {
    this.polling = setTimeout(() => this.poll(), POLL_MS);
    this.fetchFrames(this.path);
  }

  stopPolling() {
    clearTimeout(this.polling);
    this.polling = null;
    this.map.fallback.hidden = true;
  }

  // The line is there while the server answers: without answers it is away, and the WebSocket is not what is missing.
  async fetchFrames(path) {
    const url = new URL(path, document.baseURI);
    url.search = new URLSearchParams(this.greeting());
    const response = await fetch(url, { cache: "no-store" }).catch(() => null);
    const message = response?.status === 200 ? await response.json() : null;
    if (this.path !== path || !this.polling) return; // another run, or the WebSocket has opened
    if (message) this.map.takeLive(message);
    this.map.fallback.hidden = !response?.ok;
    this.map.fallback.textContent = _("A fall-back: this picture's WebSocket is refused, so it asks for new frames once a second. A proxy in front of the server has to pass WebSockets on (docs/deploying.md).");
  }
}
