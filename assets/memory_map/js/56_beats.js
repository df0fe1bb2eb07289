// Short paragraphs about the frame, worded and counted in Python. They change with the picture, also during a drag.

class Beats {
  constructor(parent) {
    this.box = htmlEl("div", "beats", parent);
    this.paragraphs = [];
  }

  // beats: [text]; words between ** and ** are strong.
  paint(beats) {
    this.box.hidden = !beats.length;
    while (this.paragraphs.length < beats.length) this.paragraphs.push({ node: htmlEl("p", "", this.box), text: "" });
    this.paragraphs.forEach((paragraph, i) => {
      paragraph.node.hidden = i >= beats.length;
      if (paragraph.node.hidden || paragraph.text === beats[i]) return;
      paragraph.text = beats[i];
      const parts = beats[i].split("**").map((part, j) => (j % 2 ? htmlEl("strong", "", null, part) : part));
      paragraph.node.replaceChildren(...parts);
    });
  }
}
