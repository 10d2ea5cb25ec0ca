"use strict";

/* What waits for the hub: it shows at once, is sent once, and can be tried again where the hub couldn't be reached. */
(() => {
  const LONGEST = 10_000; /* then it may be sent again */
  const root = document.documentElement;
  let letGo = 0;
  let asked = false; /* the hub, whether it can be reached */

  const release = () => {
    clearTimeout(letGo);
    delete root.dataset.waiting;
    for (const part of all("[data-sent]")) delete part.dataset.sent;
    for (const button of all("[data-pressed]")) {
      button.removeAttribute("aria-busy");
      delete button.dataset.pressed;
    }
  };
  const wait = (form, submitter) => {
    root.dataset.waiting = "";
    if (form) form.dataset.sent = "";
    if (submitter) {
      submitter.setAttribute("aria-busy", "true");
      submitter.dataset.pressed = "";
    }
    clearTimeout(letGo);
    letGo = setTimeout(release, LONGEST);
  };
  addEventListener("pageshow", release);

  /* Where the hub can't be reached, the browser would leave the page for one of its own, with what was typed. So the hub is
     asked before a form is sent, and before a link is followed without a network, unless the hub is on this machine. */
  const answer = async () => {
    try {
      return await fetch(sentences.health, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(LONGEST) });
    } catch (error) {
      if (error.name === "TimeoutError") return {}; /* a hub that is only slow */
      throw error;
    }
  };
  const ifReachable = async (go, form, submitter) => {
    wait(form, submitter);
    try {
      const { status, headers } = await answer();
      const isHub = headers?.get("content-type")?.includes("json"); /* which says why it is unavailable */
      if ([502, 503, 504].includes(status) && !isHub) throw new Error("a proxy without its hub");
    } catch {
      release();
      say(sentences.unreachable, "problem", () => ifReachable(go, form, submitter));
      return;
    }
    release();
    asked = true;
    try { go(); } finally { asked = false; }
  };
  const isSame = (button, other) => button.type === "submit" && button.name === other.name && button.value === other.value;
  const send = (form, submitter) => { /* the part of the page with the form or its button may have been replaced meanwhile */
    if (!form.isConnected) {
      delete form.dataset.sent;
      form.hidden = true;
      document.body.append(form);
    }
    const button = submitter?.form === form ? submitter : submitter && [...form.elements].find((one) => isSame(one, submitter));
    form.requestSubmit(button);
  };
  const isHeld = (event, go, form, submitter) => {
    if (asked || (navigator.onLine && form?.getAttribute("method")?.toLowerCase() !== "post")) return false;
    event.preventDefault();
    ifReachable(go, form, submitter);
    return true;
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!("sent" in form.dataset) && !form.matches("form.htmx-request[method='post']")) return;
    event.preventDefault(); /* a second click */
    event.stopImmediatePropagation();
  }, true);
  addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (event.defaultPrevented || form.getAttribute("method") === "dialog" || isHeld(event, () => send(form, submitter), form, submitter)) return;
    if (!submitter?.hasAttribute("data-file")) wait(form, submitter); /* a file leaves the page as it is */
  });
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const isHere = link.origin !== location.origin || link.target || link.hasAttribute("download")
      || (link.hash && link.pathname === location.pathname && link.search === location.search);
    if (!isHere && !isHeld(event, () => link.click())) wait();
  });

  /* A part of a page: the same request again. */
  const again = ({ elt, requestConfig: { verb, path, target, triggeringEvent: event } }) => () => {
    if (elt.isConnected) htmx.ajax(verb, path, { source: elt, target, event });
  };
  for (const [name, words] of [["htmx:sendError", sentences.unreachable], ["htmx:timeout", sentences.slow]]) {
    document.addEventListener(name, ({ detail }) => say(words, "problem", again(detail)));
  }
})();
