"use strict";

/* The inbox: the selected item and moving to others. Items after it are fetched ahead, so that they are shown at once.
   inbox-decisions.js sends the decisions. */
const inboxItems = (() => {
  const AT_ONCE = 6; /* items fetched ahead by one request: MAX_AHEAD of the hub */
  const FRESH_FOR = 120_000; /* later an item is fetched again before it is shown */
  const ahead = new Map(); /* key of an item → its article, null until it is there, and when it was asked for */
  const deciding = new Set(); /* keys of items whose decision the hub hasn't answered yet: their rows are gone */
  const theInbox = () => one("[data-inbox]");
  const theItem = () => one("#inbox-detail");
  const rowLinks = () => all("#inbox-list [data-row] > a");
  const itemOf = (link) => link.parentElement.dataset.item;
  const fromText = (text) => new DOMParser().parseFromString(text, "text/html");
  const isFresh = (key) => Date.now() - (ahead.get(key)?.at ?? 0) < FRESH_FOR;
  const isReady = (key) => isFresh(key) && ahead.get(key).article !== null;
  let aim = ""; /* key of the item that is shown, or asked for */

  const select = (key) => {
    aim = key;
    for (const link of rowLinks()) {
      if (itemOf(link) === key) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  const neighbour = (by) => {
    const links = rowLinks();
    return links[links.findIndex((link) => itemOf(link) === aim) + by];
  };
  /* The focus that is lost with what is replaced goes to the selected row. */
  const refocus = () => {
    const link = one("#inbox-list [aria-current='true']");
    (link && isShown(link) ? link : Object.assign(theInbox(), { tabIndex: -1 })).focus({ preventScroll: true });
  };
  const keepFocus = (change) => {
    const isInside = theInbox().contains(document.activeElement);
    change();
    if (isInside && document.activeElement === document.body) refocus();
  };
  /* Until the next item is there, the one before it is shown, and nothing in it can be pressed. */
  const hold = (isHeld) => {
    const item = theItem();
    if (!item) return;
    if (isHeld && item.contains(document.activeElement)) refocus();
    item.inert = isHeld;
    item.ariaBusy = isHeld ? "true" : null;
  };
  /* In a narrow window an item hides the list, which is where it was when the link above the item leads back to it. */
  let listPlace = 0;
  const bringIntoView = () => {
    const isNarrow = matchMedia("(width < 60rem)").matches;
    if (isNarrow) scrollTo({ top: "open" in theInbox().dataset ? 0 : listPlace, behavior: "instant" });
    else one("#inbox [aria-current='true']")?.scrollIntoView({ block: "nearest" });
  };
  const aimAtShown = () => { aim = theItem()?.dataset.item ?? ""; };
  /* A further item replaces the one in the browser's history, so that Back leads to the list. */
  const replaceHistory = () => {
    if ("open" in theInbox().dataset) one("#inbox-list .inbox-rows")?.setAttribute("hx-replace-url", "true");
  };
  const show = (article, url) => {
    const old = theItem();
    if (!old.inert && !deciding.has(old.dataset.item)) ahead.set(old.dataset.item, { article: old, at: old.fetchedAt ?? Date.now() });
    article.fetchedAt = ahead.get(article.dataset.item)?.at;
    keepFocus(() => {
      old.replaceWith(article);
      select(article.dataset.item);
    });
    htmx.process(article);
    if (!("open" in theInbox().dataset)) {
      history.replaceState({ ...history.state, htmx: true }, ""); /* so that Back loads it again */
      history.pushState({ htmx: true }, "");
    }
    history.replaceState(history.state, "", url);
    theInbox().dataset.open = "";
    replaceHistory();
    bringIntoView();
    document.dispatchEvent(new CustomEvent("item-shown"));
    fetchAhead();
  };
  /* Show an item that is there; return whether it is. */
  const go = (link) => {
    const key = itemOf(link);
    if (key === theItem()?.dataset.item || !isReady(key)) return false;
    htmx.trigger(theInbox(), "htmx:abort");
    show(ahead.get(key).article, link.href);
    return true;
  };
  const move = (by) => {
    const link = neighbour(by);
    if (link) return go(link) || (link.click(), true);
    return !theItem().inert && follow(`#inbox-detail .inbox-steps [data-key="${by > 0 ? "j" : "k"}"]`);
  };

  let isFetching = false;
  const fetchAhead = async () => {
    const links = rowLinks();
    const at = links.findIndex((link) => itemOf(link) === aim);
    const keys = links.slice(at + 1).map(itemOf).filter((key) => !isFresh(key)).slice(0, AT_ONCE);
    if (isFetching || !theItem() || !keys.length) return;
    isFetching = true;
    const url = new URL(one("#inbox-list").dataset.list, location.href);
    for (const key of keys) {
      url.searchParams.append("ahead", key);
      ahead.set(key, { article: null, at: Date.now() });
    }
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(30_000) });
      const found = response.ok && !response.redirected ? all("#inbox-detail", fromText(await response.text())) : [];
      for (const article of found) ahead.set(article.dataset.item, { article: document.adoptNode(article), at: Date.now() });
      markReady();
      setTimeout(fetchAhead);
    } catch { /* these items are fetched when they are selected */ } finally { isFetching = false; }
  };
  const markReady = () => {
    for (const link of rowLinks()) link.parentElement.toggleAttribute("data-ready", isReady(itemOf(link)));
  };
  /* After the list was replaced: without the items that are being decided. */
  const tidy = () => {
    for (const link of rowLinks()) if (deciding.has(itemOf(link))) link.parentElement.remove();
    select(aim);
    replaceHistory();
    markReady();
    fetchAhead();
  };

  const ignore = (words = theInbox().dataset.unseen) => { say(words, "info"); return true; };
  const undoLatest = () => { all("#messages [data-key='u']").at(-1)?.click(); return true; };
  pageKeys.push((key) => {
    if (!theInbox() || !theItem() || !isShown(theItem()) || key.length !== 1) return false;
    if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
    if (key === "u") return deciding.size ? ignore(theInbox().dataset.unsaved) : undoLatest();
    if (theItem().inert) return /[ader]/i.test(key) && ignore();
    return follow(`main [data-key="${CSS.escape(key)}"]`);
  });
  document.addEventListener("click", (event) => {
    const isPlain = !event.button && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    const link = isPlain && event.target.closest("#inbox .inbox-rows a, #inbox .inbox-steps a");
    if (!link) return;
    if (!("open" in theInbox().dataset)) listPlace = scrollY;
    const row = link.dataset.key ? neighbour(link.dataset.key === "j" ? 1 : -1) : link;
    if (!row || !go(row)) return; /* the link's own request */
    event.preventDefault();
    event.stopPropagation();
  }, true);
  const isMove = ({ target, elt }) => target?.id === "inbox" && elt.closest("#inbox") !== null;
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (!isMove(detail)) return;
    hold(true);
    if (detail.elt.closest("[data-row]")) select(itemOf(detail.elt));
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!isMove(detail) || detail.successful || !theItem()) return;
    hold(false);
    select(theItem().dataset.item);
  });
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (target.id !== "inbox") return;
    aimAtShown();
    bringIntoView();
  });
  /* The text of the row that is kept, unless the person has changed it. */
  document.addEventListener("change", ({ target }) => {
    const box = target.matches("[name='stays']") && one("[data-merged]", target.form);
    const texts = box ? all("[name='stays']", target.form).map((row) => row.dataset.text) : [];
    if (texts.includes(box?.value)) box.value = target.dataset.text;
  });
  aimAtShown();
  new MutationObserver(tidy).observe(one("main"), { childList: true, subtree: true });
  tidy();
  return { ahead, deciding, theInbox, theItem, itemOf, fromText, isReady, neighbour, hold, keepFocus, go, tidy, aimAtShown, bringIntoView };
})();
