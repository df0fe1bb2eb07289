// Stored contents without places: a server that says neither where a block lies nor whose it is. Cards stand in the
// order of storing, and nothing is said of what is not known.

function hasUnknownPlacement(map) {
  return map.payload?.places === "unknown";
}

function storedName(id) {
  return _("stored {n}", { n: id + 1 });
}

function storedReadout(map, state, target, spots) {
  const id = spots.blocks[0];
  if (!target || id === undefined) return map.withControls ? _("Point at a block to read it.") : "";
  const content = target.kind === "slot" ? state.blocks[id].slots[target.off] : null;
  const words = content ? [storedToken(target.off, state.layout.block_size, map.store.tokens[content.token])] : [];
  return [storedName(id), ...words, _("physical place and holders unknown")].join("  ·  ");
}

function storedToken(pos, size, [id, text]) {
  return _("token {pos} of its {size}: “{text}” (id {id})", { pos, size, text, id });
}

function storedTable(map, state) {
  const rows = state.blocks.map((b, id) => [id + 1, b.slots.map((c) => (c ? map.tokenText(c.token) : "–")).join(" ")]);
  return makeTable(_("Stored blocks (physical place unknown)"), [_("in order of storing"), _("tokens")], rows.slice(0, TABLE_ROWS));
}
