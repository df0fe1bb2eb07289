// The iframe that shows this picture alone in another page, to copy: `?figure=` (views/embed.py).

const PICTURES = ".st-key-lesson_picture, .st-key-live_picture"; // the containers of the pages that have a figure
const IN_THE_FRAME = `${PICTURES}, .st-key-live_bar`;
const NOT_IN_A_FRAME = ["room", "follow", "engine"]; // who follows whom, and the name that opens a run under way

class Embed {
  constructor(map, parent) {
    this.map = map;
    const picture = map.root.getRootNode().host?.closest(PICTURES);
    this.isOffered = picture && !new URLSearchParams(window.location.search).has("figure"); // no frame in a frame
    this.box = htmlEl("details", "embed", parent);
    htmlEl("summary", "", this.box, _("Embed"));
    const menu = htmlEl("div", "menu", this.box);
    menu.tabIndex = -1; // a click on its words must not take the focus out of it, which closes it
    htmlEl("p", "", menu, _("This picture alone, for a page of yours. The server must name your site in PAGED_KV_FRAME_ANCESTORS."));
    this.text = htmlEl("textarea", "", menu);
    Object.assign(this.text, { readOnly: true, rows: 4, spellcheck: false });
    this.text.setAttribute("aria-label", _("HTML to embed it"));
    this.copied = htmlEl("button", "", menu, _("Copy"));
    this.copied.type = "button";
    this.copied.onclick = () => this.copy();
    closeWhenLeft(this.box);
    this.box.addEventListener("toggle", () => this.box.open && this.fill());
    menu.addEventListener("keydown", (e) => e.key !== "Escape" && e.stopPropagation()); // arrows move in the text, not the map
  }

  // Of two maps on a page, the one with the slider has it.
  paint() {
    this.box.hidden = !this.isOffered || !this.map.withControls;
  }

  fill() {
    this.copied.textContent = _("Copy");
    this.text.value = this.html();
  }

  // At the values in the address, as tall as the picture is now.
  html() {
    const page = new URL(window.location.href);
    for (const name of NOT_IN_A_FRAME) page.searchParams.delete(name);
    const source = new URL(".", document.baseURI);
    source.search = page.search;
    source.searchParams.set("figure", page.pathname.split("/").at(-1));
    source.searchParams.set("embed", "true");
    const frame = document.createElement("iframe");
    Object.assign(frame, { src: source.href, title: this.map.payload.title || _("Memory map"), loading: "lazy" });
    const height = [...document.querySelectorAll(IN_THE_FRAME)].reduce((sum, part) => sum + part.scrollHeight, 16);
    frame.setAttribute("style", `width: 100%; height: ${height}px; border: 0`);
    return frame.outerHTML;
  }

  // A page that came over plain HTTP from another machine has no clipboard: there the selection is copied.
  async copy() {
    this.text.select();
    try {
      await navigator.clipboard.writeText(this.text.value);
    } catch {
      document.execCommand("copy");
    }
    this.copied.textContent = _("Copied");
  }
}
