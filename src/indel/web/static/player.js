// <indel-player data-grid="…">: plays the rows of a grid, one after the other.
// Everything is built from text nodes: nothing that is shown can become markup.
// It lives in a shadow tree: whoever replaces the element's data and children, as Gradio does at
// each run, cannot empty it, and other styles do not reach it.
(() => {
  const STYLES = "/* player.css */";
  const SPACE = "·";
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  const look = (element, cell) => {
    const [, symbol, fate, isMarker, background, colour] = cell;
    // A space that stays is blank, so that the words can be read; one that comes or goes is seen.
    element.textContent = symbol === SPACE && fate === "kept" ? " " : symbol;
    element.className = "cell " + fate + (isMarker ? " marker" : "") + (background ? " square" : "");
    element.style.background = isMarker ? "" : background || "";
    element.style.color = isMarker ? "" : colour || "";
  };

  class Player extends HTMLElement {
    static observedAttributes = ["data-grid"];

    connectedCallback() {
      if (!this.shadowRoot) this.attachShadow({ mode: "open" });
      if (this.built !== this.dataset.grid) this.build();
    }

    attributeChangedCallback() {
      if (this.shadowRoot && this.built !== this.dataset.grid) this.build();
    }

    disconnectedCallback() {
      this.halt();
      this.sizes?.disconnect();
      this.seen?.disconnect();
      this.built = null;
    }

    build() {
      this.halt();
      this.built = this.dataset.grid;
      const grid = JSON.parse(this.built);
      this.rows = grid.rows;
      this.noun = grid.noun;
      this.width = grid.width;
      this.step = 0;
      this.letters = new Map();
      this.stage = make("div", { className: "stage" });
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
        const cells = row.cells.map((cell) => {
          const span = make("span");
          look(span, cell);
          return span;
        });
        const button = make("button", { type: "button", className: "line", tabIndex: -1 },
          make("b", { textContent: row.name }), make("span", { className: "cells" }, ...cells));
        button.addEventListener("click", () => this.stop(number));
        return button;
      });
      this.list = make("div", { className: "rows", tabIndex: 0 }, ...this.lines);
      this.list.setAttribute("aria-label", "All steps");
      this.list.setAttribute("role", "group");
      const all = make("details", { open: true }, make("summary", { textContent: "All steps" }), this.list);
      const legend = make("p", { className: "legend" });
      const sample = this.noun === "number" ? "7" : "a";
      for (const [fate, marker, sign, words] of [
        ["inserted", " marker", "+", "a " + this.noun + " will come here"],
        ["inserted", "", sample, "new"],
        ["replaced", "", sample, "changed"],
        ["deleted", " marker", sample, "goes"],
      ])
        legend.append(make("span", {}, make("span", { className: "cell " + fate + marker, textContent: sign }), " " + words));
      this.shadowRoot.replaceChildren(make("style", { textContent: STYLES }),
        this.now, this.stage, controls, legend, all);
      this.tabIndex = 0;
      this.setAttribute("role", "group");
      this.back.addEventListener("click", () => this.stop(this.step - 1));
      this.on.addEventListener("click", () => this.stop(this.step + 1));
      this.play.addEventListener("click", () => this.toggle());
      this.slider.addEventListener("input", () => this.stop(Number(this.slider.value)));
      this.onkeydown = (event) => this.key(event);
      this.sizes?.disconnect();
      this.sizes = new ResizeObserver(() => this.arrange());
      this.sizes.observe(this.stage);
      this.stop(isStill() ? this.rows.length - 1 : 0);
      this.playWhenSeen();
    }

    playWhenSeen() {
      this.seen?.disconnect();
      if (isStill()) return;
      this.seen = new IntersectionObserver((entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        this.seen.disconnect();
        if (this.step === 0 && !this.timer) this.toggle();
      });
      this.seen.observe(this);
    }

    key(event) {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const to = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: this.rows.length - 1 }[event.key];
      const target = event.composedPath()[0];
      if (to !== undefined) this.stop(to);
      else if (event.key === " " && target.tagName !== "SUMMARY") this.toggle();
      else return;
      event.preventDefault();
    }

    toggle() {
      if (this.timer) return this.stop(this.step);
      if (this.step === this.rows.length - 1) this.show(0);
      // About eight seconds for all.
      const pause = Math.max(150, Math.min(600, 8000 / this.rows.length));
      this.timer = setInterval(() => {
        if (this.step === this.rows.length - 1) this.stop(this.step);
        else this.show(this.step + 1);
      }, pause);
      this.label();
    }

    halt() {
      clearInterval(this.timer);
      this.timer = null;
    }

    stop(step) {
      this.halt();
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
      this.now.replaceChildren(make("b", { textContent: row.name }), " ",
        make("bdi", { textContent: row.text || "(no " + this.noun + " yet)" }));
      this.arrange();
      this.slider.value = this.step;
      this.slider.setAttribute("aria-valuetext", row.name);
      this.count.textContent = this.step + 1 + " / " + this.rows.length;
      this.lines.forEach((line, number) => line.classList.toggle("current", number === this.step));
      const current = this.lines[this.step];
      const above = current.offsetTop; // the list is its offset parent
      if (above < this.list.scrollTop || above + current.offsetHeight > this.list.scrollTop + this.list.clientHeight)
        this.list.scrollTop = above - this.list.clientHeight / 2;
    }

    // Puts the tokens that live now side by side, word by word; those that lived before glide there.
    arrange() {
      const row = this.rows[this.step];
      const size = parseFloat(getComputedStyle(this.stage).fontSize) || 18;
      const unit = size * (0.64 * this.width + (this.width > 1 ? 0.6 : 0));
      const height = size * 1.6;
      const room = Math.max(1, Math.floor(this.stage.clientWidth / unit));
      const living = new Set(row.cells.map((cell) => cell[0]));
      for (const [name, element] of this.letters)
        if (!living.has(name)) {
          this.letters.delete(name);
          element.remove();
        }
      let line = 0;
      let place = 0;
      row.cells.forEach((cell, number) => {
        const isSpace = cell[1] === SPACE;
        if (!isSpace && (number === 0 || row.cells[number - 1][1] === SPACE)) {
          let length = 1;
          while (number + length < row.cells.length && row.cells[number + length][1] !== SPACE && this.width === 1) length++;
          if (place > 0 && place + length > room) [line, place] = [line + 1, 0];
        }
        if (place >= room && !isSpace) [line, place] = [line + 1, 0];
        let element = this.letters.get(cell[0]);
        if (!element) {
          element = make("span");
          this.letters.set(cell[0], element);
          this.stage.append(element);
        }
        look(element, cell);
        element.style.width = unit - (this.width > 1 ? 3 : 0) + "px";
        element.style.transform = `translate(${Math.min(place, room) * unit}px, ${line * height}px)`;
        place++;
      });
      const wanted = (line + 1) * height + "px";
      if (this.stage.style.height !== wanted) this.stage.style.height = wanted;
    }
  }

  if (!customElements.get("indel-player")) customElements.define("indel-player", Player);
})();
