// The entry Streamlit calls at each render (components v2).

const mounted = new WeakMap();

export default function memoryMap({ data, parentElement, setStateValue }) {
  let map = mounted.get(parentElement);
  if (!map) {
    map = new MemoryMap(parentElement.querySelector(".mm"));
    mounted.set(parentElement, map);
    map.root.memoryMap = map; // a handle for measurements
  }
  map.update(data, setStateValue);
  return () => {
    const host = parentElement.host ?? parentElement;
    if (host.isConnected) return; // a superseded render cleans up while the map is still on the page
    map.stop();
    mounted.delete(parentElement);
  };
}
