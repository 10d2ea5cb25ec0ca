"use strict";

/* Completions under the search box, as a combobox: arrow keys choose, Enter or Tab takes, Escape closes. */
(() => {
  const box = document.getElementById("q");
  const list = document.getElementById("search-offers");
  const address = box.closest("[data-complete]").dataset.complete;
  let asking = null;
  let waiting = 0;

  const letters = (text) => [...text].length;
  const options = () => [...list.children];
  const chosen = () => list.querySelector("[aria-selected='true']");
  const close = () => {
    clearTimeout(waiting);
    asking?.abort();
    list.hidden = true;
    list.replaceChildren();
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const choose = (option) => {
    chosen()?.setAttribute("aria-selected", "false");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", option.id);
  };
  const take = (option) => {
    box.value = option.dataset.text;
    const place = [...box.value].slice(0, Number(option.dataset.cursor)).join("").length;
    close();
    box.focus();
    box.setSelectionRange(place, place);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const offer = async () => {
    const cursor = letters(box.value.slice(0, box.selectionStart));
    asking?.abort();
    asking = new AbortController();
    try {
      const query = new URLSearchParams({ q: box.value, cursor });
      const answer = await fetch(`${address}?${query}`, { signal: asking.signal, headers: { "HX-Request": "true" } });
      if (!answer.ok || answer.redirected || document.activeElement !== box) return;
      const parsed = new DOMParser().parseFromString(`<ul>${await answer.text()}</ul>`, "text/html");
      list.replaceChildren(...parsed.querySelectorAll("[role='option']"));
      list.hidden = !list.children.length;
      box.setAttribute("aria-expanded", String(!list.hidden));
      box.removeAttribute("aria-activedescendant");
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  };

  /* Only where a field or the beginning of one stands before the cursor is there anything to offer. */
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    const before = box.value.slice(0, box.selectionStart);
    if (/(?:^|[\s(])-?(?:[A-Za-z_]{2,}|[A-Za-z_]+:(?:\S|"[^"]*)*)$/.test(before)) waiting = setTimeout(offer, 120);
    else close();
  });
  box.addEventListener("keydown", (event) => {
    const all = options();
    const here = all.indexOf(chosen());
    if (event.isComposing) return;
    if (event.key === "Escape") event.preventDefault(); /* which would empty the box */
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const next = here + (event.key === "ArrowDown" ? 1 : -1);
      choose(all[(next + all.length + (here < 0 && next < 0 ? 1 : 0)) % all.length]);
    } else if ((event.key === "Enter" || event.key === "Tab") && here >= 0) take(all[here]);
    else if (event.key === "Escape") {
      close();
      event.stopPropagation();
    } else {
      if (event.key === "Enter") close();
      return;
    }
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => {
    const option = event.target.closest("[role='option']");
    event.preventDefault();
    if (option) take(option);
  });
  box.addEventListener("blur", close);

  /* Results while typing. A search that the form sends cancels what is about to be asked, and is never aborted by it. */
  let pause = 0;
  let shown = box.value;
  let isSending = false;
  const search = () => {
    pause = 0;
    if (isSending || box.value === shown) return;
    shown = box.value;
    htmx.trigger(box, "typed");
  };
  box.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(search, 250);
  });
  const stopTyping = () => {
    clearTimeout(pause);
    pause = 0;
    shown = box.value;
  };
  /* Before htmx aborts the search that a second one replaces: its end must not start one for the text in between. */
  box.form.addEventListener("submit", stopTyping, true);
  one(".search-options", box.form).addEventListener("change", stopTyping);
  /* Back leads to each search that was sent. What is typed after it is one more entry, which the next letters replace. */
  let isSent = Boolean(box.value);
  document.body.addEventListener("htmx:beforeHistoryUpdate", ({ detail: { history: update, requestConfig: { elt } } }) => {
    if (elt !== box && elt !== box.form) return;
    if (elt === box) update.type = isSent ? "push" : "replace";
    else if (update.path === location.pathname + location.search) update.type = "replace";
    isSent = elt === box.form;
  });
  box.form.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target !== box.form) return;
    stopTyping();
    close();
    isSending = true;
  });
  box.form.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== box.form) return;
    isSending = false;
    if (!pause) search(); /* else the person is still typing */
  });
})();
