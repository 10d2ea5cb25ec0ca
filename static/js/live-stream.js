"use strict";

/* What the hub says: one connection for all pages of a browser, since it may have only six. A visible page holds it,
   and tells the others. hear() gets the ids of changed workspaces, or null: ask now, and if nothing is heard, regularly. */
const hearHub = (address, hear) => {
  const SILENCE = 50_000; /* ms; the hub says something every 20 seconds */
  const pages = new BroadcastChannel("memoryhub-live");
  let heardAt = -Infinity, source = null, openedAt = 0, misses = 0, timer = 0, release = null, isWaiting = false, isOver = false;
  const isHeard = () => Date.now() - heardAt < SILENCE;

  const take = (said) => { /* ids; "new": what happened before isn't known; "lost" */
    const isNew = said === "new" || !isHeard();
    heardAt = said === "lost" ? -Infinity : Date.now();
    hear(Array.isArray(said) && !isNew ? said : null);
  };
  const tell = (said) => {
    take(said);
    pages.postMessage(said);
  };
  pages.onmessage = ({ data }) => {
    if (data !== "anybody?") take(data);
    else if (source && isHeard()) pages.postMessage([]);
  };

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    let isFirst = true;
    openedAt = Date.now();
    source = new EventSource(address);
    source.onmessage = ({ data }) => {
      tell(isFirst ? "new" : JSON.parse(data));
      isFirst = false;
      misses = 0;
    };
    source.onerror = lose; /* the hub stops, or refuses, or ends it: a poll tells why */
    watch();
  };
  const lose = () => {
    close();
    tell("lost");
    timer = setTimeout(open, Math.min(2000 * 2 ** misses, 60_000) * (1 + Math.random()));
    misses += 1;
  };
  const watch = () => { /* a connection may break, or a proxy may keep what it should pass on */
    timer = setTimeout(() => (Date.now() - Math.max(openedAt, heardAt) < SILENCE ? watch() : lose()), 10_000);
  };

  const hold = () => new Promise((resolve) => {
    release = resolve;
    timer = setTimeout(open, 500); /* not for a page that is left at once */
  });
  const join = async () => {
    if (isWaiting || isOver || document.hidden) return;
    isWaiting = true;
    await navigator.locks.request("memoryhub-live", () => (isOver || document.hidden ? null : hold()));
    isWaiting = false;
    join();
  };
  const leave = () => {
    close();
    release?.();
    release = null;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : join()));
  join();
  pages.postMessage("anybody?");
  return { isHeard, leave: () => { isOver = true; leave(); } };
};
