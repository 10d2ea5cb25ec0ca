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

/* Unsaved text survives a lost connection or login: kept for this tab alone, until it is saved or discarded, or until
   somebody else signs in. It is kept with the hidden fields of its form, which tell the hub what it was based on. */
const forget = (key) => sessionStorage.removeItem(`unsaved:${key}`);
{
  const { user } = document.body.dataset;
  const isOther = user && user !== (sessionStorage.getItem("unsaved-user") ?? user);
  if (isOther || new URLSearchParams(location.search).has("signed-out")) {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith("unsaved")) sessionStorage.removeItem(key);
  }
  if (user) sessionStorage.setItem("unsaved-user", user);
}
/* The form that was sent last, if this page may be the answer to it. The answer says what was saved, or what waits. */
const sentForm = sessionStorage.getItem("unsaved-sent");
sessionStorage.removeItem("unsaved-sent");
if (sentForm && one("#messages > :is([data-level='success'], [data-level='info'])")) forget(sentForm);
const keepDraft = (key, fields, discarded, words = sentences.restored) => {
  const { form } = fields[0];
  const hidden = all("input[type='hidden'][name]", form).filter(({ name }) => name !== "csrfmiddlewaretoken");
  const kept = JSON.parse(sessionStorage.getItem(`unsaved:${key}`) ?? "{}");
  const changed = fields.filter(({ name, value }) => name in kept && kept[name] !== value);
  if (changed.length) {
    const restored = [...changed, ...hidden.filter(({ name }) => name in kept)];
    const shown = new Map(restored.map((field) => [field, field.value]));
    for (const field of shown.keys()) field.value = kept[field.name];
    say(words, "info", () => {
      for (const [field, value] of shown) field.value = value;
      forget(key);
      discarded?.();
    }, sentences.discard);
  }
  form.addEventListener("input", () => {
    sessionStorage.setItem(`unsaved:${key}`, JSON.stringify(Object.fromEntries([...hidden, ...fields].map(({ name, value }) => [name, value]))));
  });
  one("[data-give-up]", form)?.addEventListener("click", () => forget(key));
  return changed.length > 0;
};
const draft = one("[data-draft]");
if (draft) {
  const showText = () => htmx.trigger(draft, "input");
  if (keepDraft(draft.dataset.draft, [draft], showText)) showText();
}
const written = one("[data-written]");
if (written && new URLSearchParams(location.search).has("saved")) forget(written.dataset.written);
