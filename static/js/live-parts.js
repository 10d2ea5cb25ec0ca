"use strict";

/* Live parts, marked data-live: what they fetch anew stands here before it is shown. Whatever would move or take away
   what a person reads, chooses or types waits behind a button. */
const waiting = new Map(); /* id of a part → its new text, not shown yet */
const rowsOf = (root) => all("[data-row][id]", root);
const idsOf = (root) => rowsOf(root).map((row) => row.id);
const byId = (id) => document.getElementById(id);
const parse = (text) => new DOMParser().parseFromString(text, "text/html");

/* Whether a person is at work in a part. */
let pointedAt = 0;
addEventListener("pointermove", () => { pointedAt = Date.now(); }, { passive: true });
const isTyped = (box) => (/^(checkbox|radio)$/.test(box.type) ? box.checked !== box.defaultChecked : box.value !== box.defaultValue);
const isBusy = (part) => {
  const chosen = getSelection();
  return (part !== document.activeElement && part.contains(document.activeElement))
    || all("dialog[open], .menu[open]", part).length > 0 || all("input, textarea", part).some(isTyped)
    || (!chosen.isCollapsed && chosen.getRangeAt(0).intersectsNode(part));
};
const isAtRest = (part) => !isBusy(part) && (!part.closest("main") /* the navigation keeps its size */
  || (part.getBoundingClientRect().top >= 0 && !(part.matches(":hover") && Date.now() - pointedAt < 1000)));

/* Showing: what was open stays open, what has the focus stays where it is, what is new is marked. */
const steadily = (change) => {
  const spot = document.activeElement.closest("main :not(main)");
  const before = spot?.getBoundingClientRect().top;
  change();
  if (spot?.isConnected) scrollBy({ top: spot.getBoundingClientRect().top - before, behavior: "instant" });
};
const takeFocus = (part) => {
  part.tabIndex = -1;
  part.focus({ preventScroll: true });
};
const replace = (old, fresh) => {
  const folds = all("details", fresh);
  all("details", old).forEach((fold, place) => {
    if (fold.open && folds[place]?.closest("[id]").id === fold.closest("[id]").id) folds[place].open = true;
  });
  const isFocused = old === document.activeElement;
  const { scrollLeft, scrollTop } = old;
  old.replaceWith(fresh);
  Object.assign(fresh, { scrollLeft, scrollTop });
  htmx.process(fresh);
  if (isFocused) takeFocus(fresh);
};
const mark = (rows) => {
  for (const row of rows) row.classList.add("is-new");
  setTimeout(() => { for (const row of rows) row.classList.remove("is-new"); }, 3000);
};
const show = (part, fresh) => {
  const known = idsOf(part);
  withdraw(part.id);
  steadily(() => replace(part, fresh));
  if (known.length) mark(rowsOf(fresh).filter((row) => !known.includes(row.id)));
};
const patch = (part, fresh) => {
  for (const row of rowsOf(fresh)) {
    const old = one(`#${CSS.escape(row.id)}`, part);
    if (!isBusy(old) && !old.isEqualNode(row)) steadily(() => replace(old, row));
  }
};

/* Offering: one quiet button for each part that waits; it goes when nothing hinders the part any more. */
const withdraw = (id) => {
  waiting.delete(id);
  byId(`offer-${id}`)?.remove();
};
const offer = (id, words, take) => {
  const button = byId(`offer-${id}`) ?? document.createElement("button");
  const textContent = byId("live").dataset.show.replace("{what}", words);
  if (button.textContent === textContent) return;
  Object.assign(button, { id: `offer-${id}`, type: "button", className: "button", textContent, onclick: take });
  byId("live-offers").append(button);
  byId("live-said").textContent = words;
};
const bring = (id) => {
  show(byId(id), parse(waiting.get(id)).getElementById(id));
  takeFocus(byId(id));
  byId(id).scrollIntoView({ block: "start" });
};
const showOrOffer = (part, fresh, text) => {
  const [known, now] = [idsOf(part), idsOf(fresh)];
  const count = now.filter((id) => !known.includes(id)).length;
  const { rows, changed } = byId("live").dataset;
  if (isAtRest(part)) return show(part, fresh);
  waiting.set(part.id, text);
  if (!part.closest("main")) return;
  if (known.length && known.join() === now.join()) patch(part, fresh);
  else offer(part.id, count ? rows.replace("{n}", count) : changed, () => bring(part.id));
};
const showWaiting = () => {
  for (const [id, text] of waiting) {
    if (!byId(id)) withdraw(id);
    else if (isAtRest(byId(id))) show(byId(id), parse(text).getElementById(id));
  }
};
