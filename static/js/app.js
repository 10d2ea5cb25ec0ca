"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/* Messages: requests that failed say so where messages are read out. */
const say = (text) => {
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.level = "problem";
  const line = document.createElement("p");
  line.textContent = text;
  notice.append(document.createElement("span"), line);
  one("#messages")?.replaceChildren(notice);
};
const failures = {
  403: "You may not do that, or the page is too old: reload it and try again.",
  404: "That is no longer there. Reload the page to see what is.",
  409: "Somebody changed this in the meantime. Reload the page to see how.",
};
document.addEventListener("htmx:responseError", ({ detail }) =>
  say(failures[detail.xhr.status] ?? `The hub answered with an error (${detail.xhr.status}). Nothing here has changed.`));
document.addEventListener("htmx:sendError", () => say("The hub cannot be reached. Is it still running?"));
document.addEventListener("htmx:timeout", () => say("The hub took too long to answer."));

/* After a swap the focus goes to the first wrong field, or to where the fragment asks for it. */
document.addEventListener("htmx:afterSettle", ({ target }) => {
  const spot = one("[aria-invalid='true'], [data-focus]", target);
  if (spot) spot.focus();
});

/* Menus, dialogs, dismissing, copying: one listener for what is there now and what is swapped in later. */
const closeMenus = (except) => all(".menu[open]").forEach((menu) => { if (menu !== except) menu.open = false; });
document.addEventListener("click", ({ target }) => {
  closeMenus(target.closest(".menu"));
  const button = target.closest("button");
  if (button?.dataset.dialog) {
    closeMenus();
    one(`#${CSS.escape(button.dataset.dialog)}`)?.showModal();
  } else if (button?.hasAttribute("data-close")) button.closest("dialog").close();
  else if (button?.hasAttribute("data-dismiss")) button.closest(".notice").remove();
  else if (button?.dataset.copy && navigator.clipboard) {
    navigator.clipboard.writeText(one(`#${CSS.escape(button.dataset.copy)}`).textContent);
    button.dataset.copied = "";
  } else if (target.matches("dialog")) target.close();
});

/* Choosing all rows of a page. */
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-choose-all]")) all("input[name='row']", target.form).forEach((box) => { box.checked = target.checked; });
});

/* A link to an entry inside a folded stretch opens what hides it. */
const unfold = () => {
  const entry = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!entry) return;
  let fold = entry.closest("details:not([open])");
  for (; fold; fold = fold.parentElement.closest("details:not([open])")) fold.open = true;
  entry.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
one(".sidenav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

/* Shortcuts. */
const step = (by) => {
  const rows = all("[data-row]").filter((row) => row.checkVisibility());
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[here < 0 ? (by > 0 ? 0 : rows.length - 1) : here + by];
  one("a", row ?? document.createElement("p"))?.focus();
  row?.scrollIntoView({ block: "nearest" });
};
let going = 0;
const keys = {
  "/": () => (one("main [data-search]") ?? one("[data-search]"))?.focus(),
  "?": () => one("#shortcuts")?.showModal(),
  j: () => step(1),
  k: () => step(-1),
  g: () => { going = Date.now(); },
  x: () => one("input[name='row']", document.activeElement.closest("[data-row]") ?? document.createElement("p"))?.click(),
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = one(".menu[open]");
    closeMenus();
    if (menu?.contains(document.activeElement)) one("summary", menu).focus();
    if (event.target.matches("[data-search]")) event.target.blur();
  }
  const typing = event.target.closest("input:not([type='checkbox'], [type='radio']), textarea, select, [contenteditable], dialog[open]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const place = Date.now() - going < 1500 && one(`[data-go="${CSS.escape(event.key)}"]`);
  going = 0;
  if (place) place.click();
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});

/* Unsaved text survives a lost connection or login: kept for this tab alone, until it is saved or given up. */
const draft = one("[data-draft]");
const forget = (key) => sessionStorage.removeItem(`draft:${key}`);
if (draft) {
  const key = `draft:${draft.dataset.draft}`;
  const kept = sessionStorage.getItem(key);
  if (kept !== null && kept !== draft.value) {
    draft.value = kept;
    say("Your unsaved text from before is back. Save it, or cancel to give it up.");
    htmx.trigger(draft, "input");
  }
  draft.addEventListener("input", () => sessionStorage.setItem(key, draft.value));
  one("[data-give-up]")?.addEventListener("click", () => forget(draft.dataset.draft));
}
const written = one("[data-written]");
if (written && new URLSearchParams(location.search).has("saved")) forget(written.dataset.written);
