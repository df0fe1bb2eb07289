// Stored contents without places: a server that says neither where a block lies nor whose it is. Cards stand in the
// order of storing, and nothing is said of what is not known.

function isPlaceless(map) {
  return map.payload?.places === "unknown";
}

function placelessName(id) {
  return said("stored {n}", { n: id + 1 });
}

function placelessReadout(map, state, target, spots) {
  const id = spots.blocks[0];
  if (!target || id === undefined) return map.withControls ? said("Point at a block to read it.") : "";
  const content = target.kind === "slot" ? state.blocks[id].slots[target.off] : null;
  const words = content ? [placelessToken(target.off, state.layout.block_size, map.store.tokens[content.token])] : [];
  return [placelessName(id), ...words, said("physical place and holders unknown")].join("  ·  ");
}

function placelessToken(pos, size, [id, text]) {
  return said("token {pos} of its {size}: “{text}” (id {id})", { pos, size, text, id });
}

function placelessTable(map, state) {
  const rows = state.blocks.map((b, id) => [id + 1, b.slots.map((c) => (c ? map.tokenText(c.token) : "–")).join(" ")]);
  return makeTable(said("Stored blocks (physical place unknown)"), [said("in order of storing"), said("tokens")], rows.slice(0, TABLE_ROWS));
}
