// Short paragraphs about the frame, worded and counted in Python. They change with the picture, also during a drag.

class Captions {
  constructor(parent) {
    this.box = htmlEl("div", "captions", parent);
    this.paragraphs = [];
  }

  // captions: [text]; words between ** and ** are strong.
  paint(captions) {
    this.box.hidden = !captions.length;
    while (this.paragraphs.length < captions.length) this.paragraphs.push({ node: htmlEl("p", "", this.box), text: "" });
    this.paragraphs.forEach((paragraph, i) => {
      paragraph.node.hidden = i >= captions.length;
      if (paragraph.node.hidden || paragraph.text === captions[i]) return;
      paragraph.text = captions[i];
      const parts = captions[i].split("**").map((part, j) => (j % 2 ? htmlEl("strong", "", null, part) : part));
      paragraph.node.replaceChildren(...parts);
    });
  }
}
