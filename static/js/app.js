"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const dateFormat = (options) => /* in the reader's language, the day first, as on all pages */
  new Intl.DateTimeFormat(document.documentElement.lang.replace(/^en$/, "en-GB") || undefined, options);

/* Messages: requests that failed say so where messages are read out. */
const say = (text, level = "problem", act = null, label = sentences.retry) => {
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.level = level;
  const line = document.createElement("p");
  line.textContent = text;
  notice.append(document.createElement("span"), line);
  if (act) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button compact", textContent: label });
    button.addEventListener("click", () => { notice.remove(); act(); });
    notice.append(button);
  }
  tell([notice]);
};
/* Messages in the inbox say what was decided, so the latest ones stay until there are newer ones, if there is room. */
const tell = (notices) => {
  const place = one("#messages");
  const kept = one("[data-inbox]") && !matchMedia("(width < 60rem)").matches ? all(".notice", place).slice(-2) : [];
  place?.replaceChildren(...kept.filter((old) => notices.every((one) => one.textContent !== old.textContent)), ...notices);
};
const sentences = one("#sentences").dataset; /* in the reader's language */
document.addEventListener("htmx:responseError", ({ detail: { xhr: { status } } }) =>
  say(sentences[status] ?? sentences.error.replace("{status}", status)));
/* A request that a newer one replaces, or that ends because the reader leaves, is no error for the console. */
htmx.logger = (_element, name, detail) => {
  if (name === "htmx:afterRequest" || name === "htmx:sendAbort") delete detail.error;
};

/* Menus, dialogs, dismissing, copying: one listener for what is there now and what is swapped in later. */
const closeMenus = (except) => all(".menu[open]").forEach((menu) => { if (menu !== except) menu.open = false; });
const openDialog = (id, opener = document.activeElement) => {
  const dialog = one(`#${CSS.escape(id)}`);
  if (!dialog || dialog.open) return;
  const back = one("summary", opener.closest(".menu") ?? document.createElement("p")) ?? opener; /* the menu is shut by then */
  dialog.addEventListener("close", () => back.focus(), { once: true });
  dialog.showModal();
};
document.addEventListener("click", ({ target }) => {
  closeMenus(target.closest(".menu"));
  const button = target.closest("button");
  if (button?.dataset.dialog) {
    closeMenus();
    openDialog(button.dataset.dialog, button);
  } else if (button?.hasAttribute("data-close")) button.closest("dialog").close();
  else if (button?.hasAttribute("data-dismiss")) button.closest(".notice").remove();
  else if (button?.dataset.copy && navigator.clipboard) {
    navigator.clipboard.writeText(one(`#${CSS.escape(button.dataset.copy)}`).textContent);
    button.dataset.copied = "";
  } else if (target.matches("dialog")) target.close();
});

/* In a field for a few names, Enter submits and Shift+Enter starts a line. */
document.addEventListener("keydown", (event) => {
  const { target, key, shiftKey, isComposing } = event;
  if (key !== "Enter" || shiftKey || isComposing || !target.matches?.("textarea[data-enter]")) return;
  event.preventDefault();
  target.form.requestSubmit();
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
all(":is(.tabs, .pills) > [aria-current]").forEach((tab) => { /* into the middle, where not all of them have room */
  const tabs = tab.parentElement;
  tabs.scrollLeft = tab.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
});

/* The page that Back leads to is loaded again where htmx has added it to the browser's history. It would begin at the top,
   so its place is kept with it. */
(() => {
  let place = 0;
  const keepPlace = () => history.replaceState({ ...history.state, place }, "");
  document.addEventListener("click", ({ target }) => {
    if (!target.closest?.("a[href]")) return;
    place = scrollY;
    keepPlace();
  }, true);
  document.addEventListener("htmx:beforeHistoryUpdate", ({ detail }) => { if (detail.history.type === "push") keepPlace(); });
  addEventListener("popstate", ({ state }) => { if (state?.htmx) sessionStorage.setItem("place", state.place ?? 0); });
  const kept = sessionStorage.getItem("place");
  sessionStorage.removeItem("place");
  if (kept) addEventListener("load", () => requestAnimationFrame(() => scrollTo({ top: kept, behavior: "instant" })));
})();

/* On a phone, filters wait behind their summary, so that a list begins on the first screen. */
if (matchMedia("(width < 40rem)").matches) for (const filters of all(".filters")) filters.open = false;

/* Unsaved text survives a lost connection or login: kept for this tab alone, until it is saved or discarded. */
const sayRestored = (discard, words = sentences.restored) => say(words, "info", discard, sentences.discard);
const draft = one("[data-draft]");
const forget = (key) => sessionStorage.removeItem(`draft:${key}`);
if (draft) {
  const key = `draft:${draft.dataset.draft}`;
  const kept = sessionStorage.getItem(key);
  if (kept !== null && kept !== draft.value) {
    draft.value = kept;
    sayRestored(() => {
      draft.value = draft.defaultValue;
      htmx.trigger(draft, "input");
      forget(draft.dataset.draft);
    });
    htmx.trigger(draft, "input");
  }
  draft.addEventListener("input", () => sessionStorage.setItem(key, draft.value));
  one("[data-give-up]")?.addEventListener("click", () => forget(draft.dataset.draft));
}
/* The form that was sent last, if this page may be the answer to it. The answer says what was saved, or what waits. */
const sentForm = sessionStorage.getItem("draft-sent");
sessionStorage.removeItem("draft-sent");
if (sentForm && one("#messages > :is([data-level='success'], [data-level='info'])")) forget(sentForm);
const written = one("[data-written]");
if (written && new URLSearchParams(location.search).has("saved")) forget(written.dataset.written);
