// Live frames over a WebSocket. We say what we have, the server sends what we lack; a lost line is taken up again.
//
//   we send      {"trace_id": ..., "have": number of messages}     on every connection
//   it sends     {"trace_id": ..., "from": number, "frames": [...]} whenever there are more

const RETRY_MS = [250, 500, 1000, 2000, 4000];

class LiveFrames {
  constructor(map) {
    this.map = map;
    this.path = null;
    this.failures = 0;
  }

  // Follow the given path (null: none). The same path again changes nothing.
  follow(path) {
    if (path === this.path) return;
    this.stop();
    this.path = path;
    if (path) this.connect();
  }

  stop() {
    this.path = null;
    clearTimeout(this.retry);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  connect() {
    const url = new URL(this.path, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onopen = () => {
      this.failures = 0;
      socket.send(JSON.stringify({ trace_id: this.map.traceId, have: this.map.store.numMessages }));
    };
    socket.onmessage = (e) => this.map.takeLive(JSON.parse(e.data));
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.retry = setTimeout(() => this.connect(), RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)]);
    };
  }
}
