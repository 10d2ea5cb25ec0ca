"use strict";

/* Shortcuts. A letter alone does something only where the reader hasn't switched that off, and never while typing. */
const nothing = document.createElement("p");
const rowAtHand = () => document.activeElement.closest("[data-row]") ?? nothing;
const isShown = (part) => part.checkVisibility();
const step = (by) => {
  const rows = all("main [data-row]").filter(isShown);
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[here < 0 ? (by > 0 ? 0 : rows.length - 1) : here + by];
  if (!row) return;
  const spot = one("a", row) ?? one("input, button", row) ?? Object.assign(row, { tabIndex: -1 });
  spot.focus();
  row.scrollIntoView({ block: "nearest" });
};
const follow = (selector, root = document) => {
  const link = all(selector, root).find(isShown);
  link?.click();
  return Boolean(link);
};
const up = () => {
  const crumbs = all(".breadcrumbs a");
  const place = crumbs.at(-1) ?? one(".sidenav a:not([aria-current])") ?? one(".brand");
  place.click();
};
const edit = () => {
  if (follow("a[href*='/edit/']", rowAtHand()) || follow("main a[href$='/edit/']")) return;
  const field = one("main form.form :is(textarea, input[type='text'])");
  for (let fold = field?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  field?.focus();
};
let going = 0;
/* The key at hand; on a keyboard of another script the Latin letter of its place, since that is what the hints say. */
const keyOf = ({ key = "", code = "", shiftKey }) => {
  if (key.length > 1 || key <= "~" || !/^Key[A-Z]$/.test(code)) return key;
  return shiftKey ? code[3] : code[3].toLowerCase();
};
/* What a page does with a key before the shortcuts of all pages: functions that return whether they did something. */
const pageKeys = [];
const keys = {
  "/": () => (one("main [data-search]") ?? one("[data-search]"))?.focus(),
  "?": () => {
    for (const line of all("#shortcuts [data-when]")) line.hidden = !one(line.dataset.when);
    openDialog("shortcuts");
  },
  j: () => step(1),
  k: () => step(-1),
  o: () => follow("a", rowAtHand()),
  u: up,
  e: edit,
  n: () => follow("main a[rel='next']"),
  p: () => follow("main a[rel='prev']"),
  "]": () => follow("main a[rel='next']"),
  "[": () => follow("main a[rel='prev']"),
  g: () => { going = Date.now(); },
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = one(".menu[open]");
    closeMenus();
    if (menu?.contains(document.activeElement)) one("summary", menu).focus();
    if (event.target.matches("[data-search]")) event.target.blur();
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("main form[method='post'] textarea")) {
    event.preventDefault();
    return event.target.form.requestSubmit(one("button[type='submit'].primary", event.target.form));
  }
  const typing = event.target.closest("input:not([type='checkbox'], [type='radio']), textarea, select, [contenteditable], dialog[open]");
  const isOff = document.documentElement.dataset.keys === "off";
  if (typing || isOff || event.ctrlKey || event.metaKey || event.altKey || event.getModifierState("AltGraph") || event.isComposing || (event.repeat && !/[jk]/i.test(keyOf(event)))) return;
  const key = keyOf(event);
  const place = Date.now() - going < 1500 && one(`[data-go="${CSS.escape(key)}"]`);
  going = 0;
  if (place) place.click();
  else if (pageKeys.some((handle) => handle(key)));
  else if (Object.hasOwn(keys, key)) keys[key]();
  else return;
  event.preventDefault();
});
