"use strict";

/* Decisions in the inbox: sent one after another, each with the key of the item that was shown. By key, the next item is
   shown at once if its text is here already; otherwise the item stays, inert, until the hub has answered. */
(() => {
  const { ahead, deciding, theInbox, theItem, itemOf, fromText, isReady, neighbour, hold, keepFocus, go, tidy, aimAtShown, bringIntoView } = inboxItems;
  const queue = []; /* url and values of a form; key of its item; article: the item if it waits for the answer */
  let isSending = false;
  let isLetter = false; /* what was done last was a key of one letter, not a click or Enter */
  addEventListener("keydown", ({ key }) => { isLetter = key.length === 1 && key !== " "; }, true);
  addEventListener("pointerdown", () => { isLetter = false; }, true);

  const put = (old, fresh) => {
    if (!old || !fresh) return;
    old.replaceWith(fresh);
    htmx.process(fresh);
  };
  const listUrl = () => {
    const url = new URL(one("#inbox-list").dataset.list, location.href);
    url.searchParams.set("part", "after-decision");
    return url.pathname + url.search;
  };
  const decide = (form, submitter) => {
    const [article, next] = [theItem(), neighbour(1)];
    const left = next ?? neighbour(-1);
    const key = article.dataset.item;
    const values = new FormData(form, submitter);
    const isQuick = isLetter && next && isReady(itemOf(next));
    const back = left ? left.getAttribute("href") : one("#inbox-list").dataset.list; /* the form's may be decided already */
    values.set("back", isQuick ? listUrl() : back);
    deciding.add(key);
    ahead.delete(key);
    queue.push({ url: form.getAttribute("action"), values, key, article: isQuick ? null : article });
    keepFocus(() => {
      if (isQuick) go(next);
      else hold(true);
      tidy();
    });
    send();
  };
  const show = (page, url) => {
    put(theInbox(), page.getElementById("inbox"));
    history.replaceState(history.state, "", url);
    aimAtShown();
    bringIntoView();
    document.dispatchEvent(new CustomEvent("item-shown"));
  };
  const take = (decision, page, url) => {
    if (!page.getElementById("inbox-list")) return location.assign(url); /* signed out, say */
    tell(all("#messages .notice", page));
    put(one("#sidenav"), page.getElementById("sidenav"));
    keepFocus(() => {
      if (decision.article && decision.article === theItem()) show(page, url);
      else if (!queue.length) put(one("#inbox-list"), page.getElementById("inbox-list"));
      tidy();
    });
  };
  const refuse = async (response) => {
    const text = fromText(await response.text()).querySelector(".notice")?.textContent.trim();
    say(text || (sentences[response.status] ?? sentences.error.replace("{status}", response.status)));
    hold(false);
    const list = await fetch(listUrl());
    if (list.ok) put(one("#inbox-list"), fromText(await list.text()).getElementById("inbox-list"));
  };
  const send = async () => {
    if (isSending) return;
    isSending = true;
    try {
      while (queue.length) {
        const { url, values, key } = queue[0];
        const response = await fetch(url, { method: "POST", body: new URLSearchParams(values), signal: AbortSignal.timeout(30_000) });
        const page = response.ok ? fromText(await response.text()) : null;
        const decision = queue.shift();
        deciding.delete(key);
        if (page) take(decision, page, response.url);
        else await refuse(response);
      }
    } catch (error) {
      say(error.name === "TimeoutError" ? sentences.slow : sentences.unreachable, "problem", send);
    } finally { isSending = false; }
  };
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("#inbox-detail form[data-decides]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!theItem().inert) decide(event.target, event.submitter);
  }, true);
  addEventListener("beforeunload", (event) => { if (queue.length) event.preventDefault(); });
})();
