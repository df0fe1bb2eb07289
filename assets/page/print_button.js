// The browser's own dialog; what is printed is said in style.css.
export default function printButton({ data, parentElement }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.words;
  button.onclick = () => window.print();
}
