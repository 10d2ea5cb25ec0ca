"use strict";

/* Choosing rows of a list: the form marked data-choosing, with boxes called row, and includes/selection.html in it.
   What is chosen stays so on the list's other pages, for this tab alone; leaving the list gives it up. */
(() => {
  const CHOSEN = "chosen:";
  const nameOf = (form) => CHOSEN + form.getAttribute("action");
  const formOf = (part) => part.closest("form[data-choosing]");
  const boxesOf = (form) => all("input[name='row']", form);
  const everyOf = (form) => one("input[name='all']", form);
  const totalOf = (form) => Number(one("input[name='expected']", form)?.value ?? 0);
  const written = (number) => number.toLocaleString(document.documentElement.lang);
  const read = (form) => new Set(JSON.parse(sessionStorage.getItem(nameOf(form)) ?? "[]"));
  let from = null; /* the box that a range begins at */

  /* Keeping: what other pages of the list have goes along in one field. */
  const keep = (form, chosen) => {
    if (chosen.size) sessionStorage.setItem(nameOf(form), JSON.stringify([...chosen]));
    else sessionStorage.removeItem(nameOf(form));
    const here = new Set(boxesOf(form).map((box) => box.value));
    const field = one("input[name='kept']", form) ?? Object.assign(document.createElement("input"), { type: "hidden", name: "kept" });
    field.value = [...chosen].filter((value) => !here.has(value)).join();
    form.append(field);
  };
  /* Which actions the chosen rows allow: in a list of several kinds, the boxes' values are "kind:key". */
  const countsOf = (form, chosen) => {
    if (everyOf(form)?.checked) return JSON.parse(everyOf(form).dataset.counts ?? "{}");
    const counts = {};
    for (const [kind] of [...chosen].map((value) => value.split(":"))) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  };
  const enable = (form, bar, chosen) => {
    const buttons = all("[data-kinds]", bar);
    if (!buttons.length) return;
    const counts = countsOf(form, chosen);
    const sum = (kinds) => kinds.reduce((total, kind) => total + (counts[kind] ?? 0), 0);
    const total = sum(Object.keys(counts));
    if (!total) return;
    for (const button of buttons) {
      const count = sum(button.dataset.kinds.split(" "));
      if (button.matches("summary")) button.ariaDisabled = count ? null : "true";
      else button.disabled = !count;
      button.title = count < total ? button.dataset.reason : "";
      one(".choosing-part", button)?.remove();
      if (!count || count === total) continue;
      const part = Object.assign(document.createElement("span"), { className: "choosing-part" });
      part.textContent = ` ${bar.dataset.part.replace("{n}", written(count)).replace("{total}", written(total))}`;
      button.append(part);
    }
  };
  const paint = (form, chosen) => {
    const bar = one(".choosing", form);
    const boxes = boxesOf(form);
    const page = one("[data-choose-page]", form);
    const total = totalOf(form);
    const hasAll = everyOf(form)?.checked ?? false;
    const checked = boxes.filter((box) => box.checked).length;
    if (page) Object.assign(page, { checked: boxes.length > 0 && checked === boxes.length, indeterminate: checked > 0 && checked < boxes.length });
    form.classList.toggle("has-chosen", hasAll || chosen.size > 0);
    if (!bar) return;
    const { some, few, every, more } = bar.dataset;
    const words = (hasAll ? every : total ? some : few).replace("{n}", written(chosen.size)).replace("{total}", written(total));
    const said = one("output", bar);
    if (said.textContent !== words) said.textContent = words;
    const offer = one("[data-choose-every]", bar);
    offer.hidden = hasAll || !everyOf(form);
    offer.textContent = more.replace("{total}", written(total));
    one("[data-choose-none]", bar).hidden = false;
    enable(form, bar, chosen);
  };
  const sync = (form) => {
    const chosen = read(form);
    for (const box of boxesOf(form)) chosen[box.checked ? "add" : "delete"](box.value);
    keep(form, chosen);
    paint(form, chosen);
  };
  const restore = (form) => {
    if ("keepSelection" in form.dataset) return resume(form);
    const chosen = read(form);
    for (const box of boxesOf(form)) box.checked = chosen.has(box.value);
    if (everyOf(form)) everyOf(form).checked = false;
    keep(form, chosen);
    paint(form, chosen);
  };

  /* An action was refused: the boxes are as they were sent, and so is what other pages have. */
  const resume = (form) => {
    delete form.dataset.keepSelection;
    if (everyOf(form)?.checked) return every(form, true);
    const others = one("input[name='kept']", form)?.value.split(",").filter(Boolean) ?? [];
    keep(form, new Set(others));
    sync(form);
  };

  /* Choosing: one, a range, the page, all that match, none. */
  const none = (form) => {
    sessionStorage.removeItem(nameOf(form));
    restore(form);
  };
  const page = (form, isChosen) => {
    for (const box of boxesOf(form)) box.checked = isChosen;
    if (everyOf(form)) everyOf(form).checked = false;
    sync(form);
  };
  const every = (form, isChosen) => {
    sessionStorage.removeItem(nameOf(form)); /* all of them: what was chosen one by one is part of it */
    for (const box of boxesOf(form)) box.checked = isChosen;
    everyOf(form).checked = isChosen;
    if (isChosen) paint(form, new Set());
    else sync(form);
  };
  const range = (box) => {
    const boxes = boxesOf(box.form);
    const [first, last] = [boxes.indexOf(from), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const between of first < 0 ? [box] : boxes.slice(first, last + 1)) between.checked = box.checked;
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest(".choosing summary[aria-disabled='true']")) event.preventDefault();
  });
  document.addEventListener("click", ({ target, shiftKey }) => {
    const form = formOf(target);
    if (!form) return;
    if (target.matches("input[name='row']")) {
      if (everyOf(form)) everyOf(form).checked = false;
      if (shiftKey && from?.form === form) range(target);
      from = target;
      sync(form);
    } else if (target.matches("[data-choose-page]")) page(form, target.checked);
    else if (target.matches("input[name='all']")) every(form, target.checked);
    else if (target.matches("[data-choose-every]")) every(form, true);
    else if (target.matches("[data-choose-none]")) none(form);
  });

  /* By keyboard: static/js/shortcuts.js calls these, unless the reader switched single keys off. */
  const boxAtHand = () => one("input[name='row']", rowAtHand());
  const choose = (box, isChosen) => {
    if (everyOf(box.form)) everyOf(box.form).checked = false;
    box.checked = isChosen;
    sync(box.form);
  };
  const extend = (by) => {
    if (boxAtHand()) {
      from ??= boxAtHand();
      choose(boxAtHand(), true);
    }
    step(by);
    if (boxAtHand()) choose(boxAtHand(), true);
  };
  Object.assign(keys, {
    x: () => boxAtHand()?.click(),
    X: () => {
      const box = boxAtHand();
      if (!box) return;
      box.checked = true;
      if (from?.form === box.form) range(box);
      choose(box, true);
      from = box;
    },
    J: () => extend(1),
    K: () => extend(-1),
    a: () => {
      const form = one("form[data-choosing]");
      if (form) page(form, !boxesOf(form).every((box) => box.checked));
    },
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !one(".menu[open], dialog[open]") && !event.target.matches("[data-search]")) {
      for (const form of all("form.has-chosen")) none(form);
    }
    if (event.key === "Enter" && event.target.matches(".choosing-ask input")) { /* not the first button of the form */
      event.preventDefault();
      one("button", event.target.parentElement).click();
    }
  }, true);

  /* Done: what was chosen is given up with it, unless it was only taken along as a file. */
  document.addEventListener("submit", ({ target, submitter }) => {
    if (target.matches("form[data-choosing]") && !submitter?.hasAttribute("data-file")) sessionStorage.removeItem(nameOf(target));
  });
  const begin = () => {
    const lists = all("form[data-choosing]");
    const known = lists.map(nameOf);
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(CHOSEN) && !known.includes(name)) sessionStorage.removeItem(name);
    }
    for (const form of lists) restore(form);
  };
  addEventListener("pageshow", begin);
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    for (const form of [...all("form[data-choosing]", target), formOf(target)].filter(Boolean)) restore(form);
  });
})();
