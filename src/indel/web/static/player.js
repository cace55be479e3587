// <indel-player data-grid="…">: plays the rows of a grid, one after the other.
// Everything is built from text nodes: nothing that is shown can become markup.
(() => {
  const PAUSE = 350; // milliseconds a row
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  const look = (element, cell) => {
    const [, symbol, fate, isMarker, background, colour] = cell;
    element.textContent = symbol;
    element.className = "cell " + fate + (isMarker ? " marker" : "") + (background ? " square" : "");
    element.style.background = isMarker ? "" : background || "";
    element.style.color = isMarker ? "" : colour || "";
  };

  const line = (row) => {
    const cells = [];
    let next = 0;
    for (const cell of row.cells) {
      if (cell[0] > next) cells.push(" ".repeat(cell[0] - next));
      const span = make("span");
      look(span, cell);
      cells.push(span);
      next = cell[0] + 1;
    }
    return make("span", { className: "cells" }, ...cells);
  };

  class Player extends HTMLElement {
    connectedCallback() {
      if (this.rows) return;
      const grid = JSON.parse(this.dataset.grid);
      this.rows = grid.rows;
      this.step = 0;
      this.timer = null;
      this.places = Array.from({ length: grid.columns }, () => make("span", { className: "cell" }));
      this.stage = make("div", { className: "stage" }, ...this.places);
      this.stage.setAttribute("aria-hidden", "true");
      this.now = make("p", { className: "now" });
      this.back = make("button", { type: "button", textContent: "◀", title: "One step back (←)" });
      this.play = make("button", { type: "button", className: "play" });
      this.on = make("button", { type: "button", textContent: "▶", title: "One step on (→)" });
      this.back.setAttribute("aria-label", "One step back");
      this.on.setAttribute("aria-label", "One step on");
      this.slider = make("input", { type: "range", min: 0, max: this.rows.length - 1, value: 0 });
      this.slider.setAttribute("aria-label", "Step");
      this.count = make("output");
      const controls = make("div", { className: "controls" },
        this.back, this.play, this.on, this.slider, this.count);
      this.lines = this.rows.map((row, number) => {
        const button = make("button", { type: "button", className: "line", tabIndex: -1 },
          make("b", { textContent: row.name }), line(row));
        button.addEventListener("click", () => this.stop(number));
        return button;
      });
      this.list = make("div", { className: "rows", tabIndex: 0 }, ...this.lines);
      this.list.setAttribute("aria-label", "All steps");
      this.list.setAttribute("role", "group");
      const all = make("details", { open: true }, make("summary", { textContent: "All steps" }), this.list);
      const legend = make("p", { className: "legend" });
      for (const [fate, marker, sign, words] of [
        ["inserted", " marker", "+", "a letter will come here"],
        ["inserted", "", "a", "new"],
        ["replaced", "", "a", "changed"],
        ["deleted", " marker", "a", "goes"],
      ])
        legend.append(make("span", {}, make("span", { className: "cell " + fate + marker, textContent: sign }), " " + words));
      this.append(this.now, this.stage, controls, legend, all);
      this.tabIndex = 0;
      this.setAttribute("role", "group");
      this.back.addEventListener("click", () => this.stop(this.step - 1));
      this.on.addEventListener("click", () => this.stop(this.step + 1));
      this.play.addEventListener("click", () => this.toggle());
      this.slider.addEventListener("input", () => this.stop(Number(this.slider.value)));
      this.addEventListener("keydown", (event) => this.key(event));
      this.stop(0);
    }

    disconnectedCallback() {
      clearInterval(this.timer);
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const to = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: this.rows.length - 1 }[event.key];
      if (to !== undefined) this.stop(to);
      else if (event.key === " " && event.target.tagName !== "SUMMARY") this.toggle();
      else return;
      event.preventDefault();
    }

    toggle() {
      if (this.timer) return this.stop(this.step);
      if (this.step === this.rows.length - 1) this.show(0);
      this.timer = setInterval(() => {
        if (this.step === this.rows.length - 1) this.stop(this.step);
        else this.show(this.step + 1);
      }, PAUSE);
      this.label();
    }

    stop(step) {
      clearInterval(this.timer);
      this.timer = null;
      this.show(step);
      this.label();
    }

    label() {
      this.play.textContent = this.timer ? "Pause" : "Play";
      this.play.title = (this.timer ? "Pause" : "Play") + " (space)";
      // A screen reader is told where a player stands, not each step of one that runs.
      this.now.setAttribute("aria-live", this.timer ? "off" : "polite");
    }

    show(step) {
      this.step = Math.max(0, Math.min(step, this.rows.length - 1));
      const row = this.rows[this.step];
      for (const place of this.places) {
        place.className = "cell";
        place.textContent = "";
        place.removeAttribute("style");
      }
      for (const cell of row.cells) look(this.places[cell[0]], cell);
      this.now.replaceChildren(make("b", { textContent: row.name }), " ", make("bdi", { textContent: row.text || "(no letter yet)" }));
      this.slider.value = this.step;
      this.slider.setAttribute("aria-valuetext", row.name);
      this.count.textContent = this.step + 1 + " / " + this.rows.length;
      this.lines.forEach((line, number) => line.classList.toggle("current", number === this.step));
      const current = this.lines[this.step];
      const above = current.offsetTop; // the list is its offset parent
      if (above < this.list.scrollTop || above + current.offsetHeight > this.list.scrollTop + this.list.clientHeight)
        this.list.scrollTop = above - this.list.clientHeight / 2;
    }
  }

  if (!customElements.get("indel-player")) customElements.define("indel-player", Player);
})();
