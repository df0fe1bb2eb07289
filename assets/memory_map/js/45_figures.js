// The figures of a frame, named and counted in Python: they change with the picture, also while the slider is dragged.

class Figures {
  constructor(parent) {
    this.box = htmlEl("dl", "figures", parent);
    this.cells = [];
  }

  // figures: [[key, name, text]]
  paint(figures) {
    this.box.hidden = !figures.length;
    while (this.cells.length < figures.length) this.cells.push(this.cell());
    this.cells.forEach(({ cell, name, text }, i) => {
      cell.hidden = i >= figures.length;
      if (cell.hidden) return;
      putText(name, figures[i][1]);
      putText(text, figures[i][2]);
      text.dataset.figure = figures[i][0];
    });
  }

  cell() {
    const cell = htmlEl("div", "", this.box);
    return { cell, name: htmlEl("dt", "", cell), text: htmlEl("dd", "", cell) };
  }
}
