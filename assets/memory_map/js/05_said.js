// The map's own words in the server's language. WORDS stands above this file and maps English to that language
// (views/map_assets.py); what it lacks stays English. Fields in {braces} are filled in wherever the translation has them.

const partsOf = {};

// A count of slots: 2,048. Numbers keep their English form in every language.
function inThousands(count) {
  return count.toLocaleString("en");
}

function said(english, fields) {
  const parts = (partsOf[english] ??= (WORDS[english] ?? english).split(/\{(\w+)\}/));
  return parts.length === 1 ? parts[0] : parts.map((part, i) => (i % 2 ? fields[part] : part)).join("");
}
