// A text file of the reader's, read in the browser and handed on once. What is too large never leaves it.

export default function filePicker({ data, parentElement, setTriggerValue }) {
  parentElement.querySelector("span").textContent = data.label;
  const input = parentElement.querySelector("input");
  input.accept = data.accept;
  input.onchange = async () => {
    const [file] = input.files;
    if (!file) return;
    const text = file.size > data.largest ? null : readable(await file.arrayBuffer());
    setTriggerValue("file", { name: file.name, size: file.size, text });
  };
}

// The text, or null for bytes that are no UTF-8: replaced characters would be another text.
function readable(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}
