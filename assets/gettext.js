// A script's texts in the server's language. CATALOGUE and PLURAL_FORM stand above this file (views/browser/assets.py):
// English text -> the text, or all forms of one that counts. What is missing stays English. Fields in {braces} are filled in
// wherever the translation has them.

const partsOf = {};

// A count of slots: 2,048. Numbers keep their English form in every language.
function inThousands(count) {
  return count.toLocaleString("en");
}

function _(message, fields) {
  return filled(CATALOGUE[message] ?? message, fields);
}

// The form of the text that the count n takes: ngettext("{n} slot", "{n} slots", 3).
function ngettext(one, many, n, fields) {
  const text = CATALOGUE[one]?.[PLURAL_FORM(n)] ?? (n === 1 ? one : many);
  return filled(text, { n: inThousands(n), ...fields });
}

function filled(text, fields) {
  const parts = (partsOf[text] ??= text.split(/\{(\w+)\}/));
  return parts.length === 1 ? parts[0] : parts.map((part, i) => (i % 2 ? fields[part] : part)).join("");
}
