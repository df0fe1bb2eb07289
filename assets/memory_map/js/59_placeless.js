// Stored contents without places: a server that says neither where a block lies nor whose it is. Cards stand in the
// order of storing, and nothing is said of what is not known.

function isPlaceless(map) {
  return map.payload?.places === "unknown";
}

function placelessName(id) {
  return `stored ${id + 1}`;
}

function placelessReadout(map, state, target, spots) {
  const id = spots.blocks[0];
  if (!target || id === undefined) return map.withControls ? "Point at a block to read it." : "";
  const content = target.kind === "slot" ? state.blocks[id].slots[target.off] : null;
  const words = content ? [`token ${target.off} of its ${state.layout.block_size}: “${map.tokenText(content.token)}” (id ${map.store.tokens[content.token][0]})`] : [];
  return [placelessName(id), ...words, "physical place and holders unknown"].join("  ·  ");
}

function placelessTable(map, state) {
  const rows = state.blocks.map((b, id) => [id + 1, b.slots.map((c) => (c ? map.tokenText(c.token) : "–")).join(" ")]);
  return makeTable("Stored blocks (physical place unknown)", ["in order of storing", "tokens"], rows.slice(0, TABLE_ROWS));
}
