"use strict";

/* Where the focus goes when a part of the page, or the page, is replaced under it. */
(() => {
  const FOCUSABLE = "a[href], button, input:not([type='hidden']), select, textarea, summary";
  const likeness = (part) => part.id || [part.tagName, part.name, part.value, part.getAttribute("href"), part.textContent.trim()].join("|");
  const toRow = (row) => (one(FOCUSABLE, row) ?? takeFocusable(row)).focus();
  const takeFocusable = (part) => Object.assign(part, { tabIndex: -1 });

  /* A part: to the same thing as before; where that is gone, to the next or
     the selected row, or else to the part itself. */
  let lost = null;
  document.addEventListener("htmx:beforeSwap", ({ detail: { target } }) => {
    const spot = document.activeElement;
    if (spot === target || !target.contains(spot)) return;
    const same = all(FOCUSABLE, target).filter((part) => likeness(part) === likeness(spot));
    const row = all("[data-row]", target).findIndex((one) => one.contains(spot));
    lost = { id: target.id, likeness: likeness(spot), place: same.indexOf(spot), row };
  });
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    const { id, likeness: wanted, place, row } = lost ?? {};
    const part = (id && document.getElementById(id)) || target;
    const spot = one("[aria-invalid='true'], [data-focus]", target);
    const isLost = lost && document.activeElement === document.body;
    lost = null;
    if (spot) return spot.focus();
    if (!isLost) return;
    const same = all(FOCUSABLE, part).filter((one) => likeness(one) === wanted);
    const rows = row < 0 ? [] : all("[data-row]", part);
    const selected = all("[data-row] [aria-current]", part).find((link) => link.checkVisibility());
    if (same.length) (same[place] ?? same[0]).focus();
    else if (rows.length) toRow(rows[Math.min(row, rows.length - 1)]);
    else if (selected) selected.focus();
    else takeFocusable(part).focus({ preventScroll: true });
  });

  /* A page: to the first wrong field; after paging to the first row; after something was done to a row, to the next. */
  const KEPT = "focus-after";
  const keep = (wanted) => sessionStorage.setItem(KEPT, JSON.stringify({ path: location.pathname, ...wanted }));
  document.addEventListener("click", ({ target }) => {
    if (target.closest(".pagination a")) keep({ first: true });
  });
  document.addEventListener("submit", ({ target, submitter }) => {
    const row = (submitter ?? target).closest("[data-row][id]");
    const rows = all("[data-row][id]");
    const place = rows.indexOf(row);
    if (row && target.method === "post") keep({ rows: [...rows.slice(place), ...rows.slice(0, place).reverse()].map(({ id }) => id) });
  });
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  const wrong = one("main [aria-invalid='true']:not([translate='no'] *)"); /* a sample on /design/ is none */
  if (wrong) wrong.focus();
  else if (kept?.path === location.pathname && !location.hash) {
    const left = (kept.rows ?? []).map((id) => document.getElementById(id)).find(Boolean);
    const row = kept.first ? one("main [data-row]") : left;
    if (row) toRow(row);
  }
})();
