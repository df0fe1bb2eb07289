// A tab's connections to the server: Streamlit's own, and WebSockets of ours that are opened again when they are lost.
// Joined before the scripts that use it (views/browser/assets.py).

// Streamlit says in these attributes how its connection and its script are.
function streamlitApp() {
  return document.querySelector("[data-testid=stApp]");
}

function isConnected() {
  return streamlitApp()?.dataset.testConnectionState === "CONNECTED";
}

// Connected, and no script runs.
function isAtRest() {
  return isConnected() && streamlitApp().dataset.testScriptState === "notRunning";
}

const POLICY_VIOLATION = 1008; // what the server closes a connection with that it does not want
const RECONNECT_MS = [300, 700, 1500, 3000, 5000];

// A WebSocket that carries JSON. The tabs of a room lose theirs in the same moment: chance keeps them from coming back in
// the same one. `refusals`: how often in a row it did not open, or was closed as unwanted; a proxy may do either.
class ReconnectingSocket {
  constructor({ onOpen, onMessage, onLost = () => {} }) {
    this.onOpen = onOpen;
    this.onMessage = onMessage;
    this.onLost = onLost;
    this.failures = 0;
    this.refusals = 0;
    this.socket = null;
  }

  // Open it now, unless it is. path: relative to the document.
  open(path) {
    if (this.socket) return;
    clearTimeout(this.retry);
    const url = new URL(path, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.socket = socket;
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.onOpen();
    };
    socket.onmessage = (e) => {
      if (this.socket === socket) this.onMessage(JSON.parse(e.data));
    };
    socket.onclose = (e) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.refusals = !wasOpen || e.code === POLICY_VIOLATION ? this.refusals + 1 : 0;
      this.onLost();
      const delay = RECONNECT_MS[Math.min(this.failures++, RECONNECT_MS.length - 1)];
      this.retry = setTimeout(() => this.open(path), delay * (0.7 + 0.6 * Math.random()));
    };
  }

  // It works: the next loss is the first again.
  resetDelay() {
    this.failures = 0;
  }

  send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  close() {
    clearTimeout(this.retry);
    const { socket } = this;
    this.socket = null;
    this.refusals = 0;
    socket?.close();
  }
}
