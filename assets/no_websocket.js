// Streamlit's page stays an empty frame while its WebSocket does not come through, and says nothing. This says why, and
// goes away once the page is connected. The server: views/server/index_page.py.

const LOOK_MS = 4000;
const appRoot = new URL(".", document.baseURI);

// A slow server is no missing WebSocket: both are asked.
async function serverAnswers() {
  try {
    return (await fetch(new URL("_stcore/health", appRoot), { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

function webSocketOpens() {
  const url = new URL("api/connection", appRoot);
  url.protocol = url.protocol.replace("http", "ws");
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.onopen = () => resolve(true);
    socket.onerror = () => resolve(false);
  });
}

function show() {
  const box = document.createElement("div");
  box.id = "no-websocket";
  box.setAttribute("role", "alert");
  box.style = "position: fixed; inset: 10vh 10vw auto; z-index: 1000000; padding: 1rem 1.5rem; border: 2px solid #D55E00; background: #fff; color: #1B2733; font: 1rem/1.5 system-ui, sans-serif";
  const title = document.createElement("strong");
  title.textContent = _("The server answers, but its WebSocket does not come through.");
  const words = document.createElement("p");
  words.style = "margin: 0.5rem 0 0";
  words.textContent = _("Every page here needs one. A proxy in front of the server leaves out the headers Upgrade and Connection, or its name is not known here; docs/deploying.md has the lines for both.");
  box.append(title, words);
  document.body.append(box);
  return box;
}

let shown = null;
async function look() {
  if (!shown && !isConnected() && (await serverAnswers()) && !(await webSocketOpens()) && !isConnected()) shown = show();
  if (isConnected()) shown?.remove();
  else setTimeout(look, LOOK_MS);
}
setTimeout(look, LOOK_MS);
