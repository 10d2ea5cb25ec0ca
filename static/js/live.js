"use strict";

/* Open pages: #live asks what changed, the parts that show it then fetch themselves, and live-parts.js shows them. It
   asks when the hub says that something changed (live-stream.js), and regularly while the hub doesn't say anything. */
(() => {
  const live = byId("live");
  const QUIET = "#live, .live-word, [data-live], [hx-trigger*='every']"; /* whose failures nobody asked for */
  const { stream, workspace } = live.dataset;
  let timer = 0, misses = 0, isOver = false, changedAt = Date.now(), unread = 0, firstUnread = null;
  let isDue = true, isAsking = false, askedAt = 0;

  /* Looking: quickly where a conversation is open or things happen, else every two seconds, and never unseen. */
  const interval = () => (byId("arrivals") || Date.now() - changedAt < 180_000 ? 700 : 2000);
  const plan = (wait = misses > 1 ? Math.min(1000 * 2 ** misses, 20_000) : interval()) => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(look, wait);
  };
  const look = () => {
    showWaiting();
    if (unread && byId("arrivals").getBoundingClientRect().top < innerHeight) haveRead();
    if (document.hidden || isAsking) return;
    if (!isDue && hub?.isHeard()) return plan();
    [isDue, isAsking, askedAt] = [false, true, Date.now()];
    htmx.trigger(live, "look");
  };
  const hear = (changed) => { /* workspaces, null for any */
    if (changed && !(workspace ? changed.includes(Number(workspace)) : changed.length)) return;
    isDue = true;
    if (misses < 2) plan(Math.max(0, askedAt + 700 - Date.now()) + Math.random() * 200); /* not all browsers at once */
  };
  const hub = stream && globalThis.navigator.locks ? hearHub(stream, hear) : null;
  document.addEventListener("visibilitychange", () => {
    isDue = true;
    if (!isOver && !document.hidden) look();
  });
  live.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => {
    isAsking = false;
    isOver = xhr.status === 286 || xhr.status === 404;
    if (isOver) hub?.leave();
    misses = isOver || xhr.status === 204 ? 0 : misses + 1;
    isDue ||= misses > 0;
    const { over, silent } = live.dataset;
    const words = isOver ? over : misses > 1 ? silent : "";
    if (byId("live-note").textContent !== words) byId("live-note").textContent = words;
    plan();
  });
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => { if (event.target.matches(QUIET)) event.stopPropagation(); }, true);
  }
  document.body.addEventListener("memory-changed", ({ detail: { after, seen, kinds } }) => {
    live.setAttribute("hx-vals", JSON.stringify({ after, seen }));
    if (!kinds.length) return;
    changedAt = Date.now();
    for (const line of all("[data-changed]")) line.hidden = false;
  });

  /* A conversation grows at its end: whoever reads there goes along, nobody else is moved. */
  const haveRead = () => {
    unread = 0;
    withdraw("arrivals");
  };
  const arrive = (end, page) => {
    const isReadThere = end.getBoundingClientRect().top < innerHeight && !isBusy(end.parentElement);
    const isTyping = document.activeElement.matches("main :is(input, textarea, select)");
    const added = [];
    steadily(() => {
      for (const row of all(".arriving > li:not(.arrivals)", page)) {
        const old = row.id && byId(row.id);
        if (!old) { end.before(row); added.push(row); }
        else if (!isBusy(old) && !old.isEqualNode(row)) replace(old, row);
      }
      replace(end, page.getElementById("arrivals"));
    });
    const turns = added.filter((row) => row.matches(".turn"));
    if (!turns.length) return;
    mark(turns);
    if (isReadThere && !isTyping) { /* to the end, but not past the first that is new */
      const [first, last] = [turns[0], byId("arrivals")].map((row) => row.getBoundingClientRect());
      return scrollBy({ top: Math.max(0, Math.min(first.top - 64, last.bottom - innerHeight)), behavior: "instant" });
    }
    if (!unread) firstUnread = turns[0];
    unread += turns.length;
    const words = live.dataset[unread === 1 ? "turn" : "turns"];
    offer("arrivals", words.replace("{n}", unread), () => {
      firstUnread.scrollIntoView({ block: "start" });
      haveRead();
    });
  };

  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { target, requestConfig, shouldSwap, serverResponse } = event.detail;
    if (!("live" in target.dataset) || !shouldSwap) return;
    if (requestConfig.elt !== target) return withdraw(target.id); /* a filter, say: what was asked for is shown */
    event.detail.shouldSwap = false;
    const page = parse(serverResponse);
    for (const id of target.dataset.live.split(" ").filter(byId)) { /* figures elsewhere on the page */
      const fresh = page.getElementById(id);
      if (fresh && !isBusy(byId(id))) replace(byId(id), fresh);
    }
    const fresh = page.getElementById(target.id);
    if (target.id === "arrivals") arrive(target, page);
    else if (fresh) showOrOffer(target, fresh, serverResponse);
  });
  plan();
})();
