"use strict";

/* Charts: a crosshair with a tooltip by pointer or arrow keys, zoom by dragging or Shift and arrows, and a click or
   Enter that opens the days of a column. Everything is read from the table that follows each chart. */
(() => {
  const dayAfter = (day) => new Date(Date.parse(day) + 864e5).toISOString().slice(0, 10);
  const address = (template, from, to) =>
    template.replace("MONTH", from.slice(0, 7)).replace("FROM", from).replace("AFTER", dayAfter(to)).replace("TO", to);

  const enhance = (figure) => {
    if (figure.dataset.chart === "ready") return;
    figure.dataset.chart = "ready";
    const plot = figure.querySelector(".chart-plot");
    const picture = plot.querySelector("svg");
    const names = [...figure.querySelectorAll("thead th")].slice(1).map((cell) => cell.textContent);
    const columns = [...figure.querySelectorAll("tbody tr")].map((row) => ({
      at: Number(row.dataset.at),
      from: row.dataset.from,
      to: row.dataset.to ?? row.dataset.from,
      label: row.cells[0].textContent,
      cells: [...row.cells].slice(1).map((cell) => cell.textContent),
    }));
    const { open, range, width } = figure.dataset;
    const tip = document.createElement("div");
    const line = document.createElement("div");
    const brush = document.createElement("div");
    tip.className = "chart-tip";
    line.className = "chart-cross";
    brush.className = "chart-brush";
    for (const part of [brush, line, tip]) {
      part.hidden = true;
      plot.append(part);
    }
    let here = columns.length - 1;
    let start = null; /* the other end of what is selected */
    let isDown = false;

    const place = (part, at) => {
      const box = picture.getBoundingClientRect();
      const outer = plot.getBoundingClientRect();
      part.style.left = `${box.left - outer.left + (box.width * at) / 100}px`;
    };
    const describe = (column) => [
      column.label,
      ...column.cells.map((cell, place) => [names[place], cell]).filter(([, cell]) => cell).map((pair) => pair.join(": ")),
    ];
    const selected = () => (start === null ? [here, here] : [Math.min(start, here), Math.max(start, here)]);
    const show = (index) => {
      here = Math.max(0, Math.min(columns.length - 1, index));
      const [first, last] = selected();
      const column = columns[here];
      const texts = first === last ? describe(column) : [`${columns[first].label} – ${columns[last].label}`];
      tip.replaceChildren(...texts.map((text, row) => {
        const part = document.createElement(row ? "span" : "b");
        part.textContent = text;
        return part;
      }));
      tip.hidden = line.hidden = false;
      place(line, column.at);
      place(tip, column.at);
      tip.dataset.side = column.at > 50 ? "before" : "after";
      brush.hidden = first === last;
      if (!brush.hidden) {
        place(brush, columns[first].at - width / 2);
        brush.style.width = `${(picture.getBoundingClientRect().width * (columns[last].at - columns[first].at + Number(width))) / 100}px`;
      }
      plot.setAttribute("aria-valuenow", here + 1);
      plot.setAttribute("aria-valuetext", texts.join(", "));
    };
    const hide = () => {
      start = null;
      tip.hidden = line.hidden = brush.hidden = true;
    };
    const nearest = (event) => {
      const box = picture.getBoundingClientRect();
      const at = (100 * (event.clientX - box.left)) / box.width;
      const distances = columns.map((column) => Math.abs(column.at - at));
      return distances.indexOf(Math.min(...distances));
    };
    const act = () => {
      const [first, last] = selected();
      if (first !== last && range) {
        const target = new URL(range, location.href);
        target.searchParams.set("from", columns[first].from);
        target.searchParams.set("to", columns[last].to);
        location.assign(target);
      } else if (first === last && open) location.assign(address(open, columns[here].from, columns[here].to));
    };

    plot.tabIndex = 0;
    plot.setAttribute("role", "slider");
    plot.setAttribute("aria-label", picture.getAttribute("aria-label"));
    plot.setAttribute("aria-valuemin", 1);
    plot.setAttribute("aria-valuemax", columns.length);
    plot.setAttribute("aria-valuenow", columns.length);
    plot.setAttribute("aria-valuetext", describe(columns[here]).join(", "));
    if (open) plot.classList.add("is-open");
    const keys = figure.querySelector(".chart-keys");
    if (keys) keys.hidden = false;

    plot.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      isDown = true;
      start = nearest(event);
      plot.setPointerCapture(event.pointerId);
      show(start);
    });
    plot.addEventListener("pointermove", (event) => show(nearest(event)));
    plot.addEventListener("pointerup", () => {
      if (!isDown) return;
      isDown = false;
      act();
      start = null;
    });
    plot.addEventListener("click", (event) => {
      if (event.pointerType !== "touch") return; /* a tap shows the tooltip; a second one on it opens the days */
      const index = nearest(event);
      if (index === here && !tip.hidden) act();
      show(index);
    });
    plot.addEventListener("pointerleave", () => { if (!isDown && document.activeElement !== plot) hide(); });
    plot.addEventListener("focus", () => { if (tip.hidden && plot.matches(":focus-visible")) show(here); });
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: columns.length - 1 };
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in steps) {
        if (!event.shiftKey) start = null;
        else start ??= here;
        show(steps[event.key]);
      } else if (event.key === "Enter") act();
      else if (event.key === "Escape" && !tip.hidden) hide();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  };

  const all = (root) => root.querySelectorAll("[data-chart]").forEach(enhance);
  all(document);
  document.addEventListener("htmx:load", ({ target }) => all(target.parentElement ?? target));
})();
