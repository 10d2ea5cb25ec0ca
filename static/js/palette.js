"use strict";

/* The command palette: a combobox in a dialog. The server answers with the rows; where one was lately is kept here. */
(() => {
  const palette = one("#palette");
  const STORE = "recent-places";
  if (!palette) return localStorage.removeItem(STORE); /* signed out: nobody else is to see where one was */
  const [box, list, count] = ["[role='combobox']", "[role='listbox']", "output"].map((part) => one(part, palette));
  const { address, workspace, user, recent } = palette.dataset;
  let waiting = 0, asking = null, asked = null; /* the text whose rows are shown */
  let later = null; /* what Enter does once these are the rows of the typed text */

  /* Recent places, newest first, of this person alone. */
  const places = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(STORE) ?? "{}");
      return kept.user === user ? kept.places : [];
    } catch { return []; }
  };
  const here = { url: location.pathname + location.search, title: document.title.replace(/ · MemoryHub$/, "") };
  const status = performance.getEntriesByType("navigation")[0]?.responseStatus ?? 200;
  if (status < 300 && location.pathname !== address) {
    const others = places().filter(({ url, title }) => url !== here.url && title !== here.title);
    localStorage.setItem(STORE, JSON.stringify({ user, places: [here, ...others].slice(0, 9) }));
  }

  const options = () => all("[role='option']", list);
  const chosen = () => one("[aria-selected='true']", list);
  const choose = (option) => {
    chosen()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) box.setAttribute("aria-activedescendant", option.id);
    else box.removeAttribute("aria-activedescendant");
  };
  const wasThere = (text) => {
    const found = places().filter(({ url, title }) => url !== here.url && title.toLowerCase().includes(text));
    if (!found.length) return [];
    const group = document.createElement("section");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", recent);
    const head = document.createElement("h2");
    head.ariaHidden = "true";
    head.textContent = recent;
    group.append(head, ...found.slice(0, text ? 2 : 4).map(({ url, title }) => {
      const row = document.createElement("a");
      Object.assign(row, { href: url, className: "palette-row", role: "option", tabIndex: -1, ariaSelected: "false" });
      row.append(Object.assign(document.createElement("span"), { className: "truncate", dir: "auto", textContent: title }));
      return row;
    }));
    return [group];
  };
  const show = (text, sections) => {
    const typed = text.trim().toLowerCase();
    const exact = sections.flatMap((section) => all("[role='option']", section)).find((row) => typed && one(".truncate", row).textContent.trim().toLowerCase() === typed);
    const first = sections.filter((section) => section.contains(exact ?? null)); /* a name typed in full precedes what one visited */
    list.replaceChildren(...first, ...wasThere(typed), ...sections.filter((section) => !first.includes(section)));
    options().slice(12).forEach((option) => option.remove());
    all("section", list).forEach((group) => { if (!one("[role='option']", group)) group.remove(); });
    options().forEach((option, place) => { option.id = `palette-${place}`; });
    choose(exact?.isConnected ? exact : options()[0]);
    count.textContent = `${palette.dataset.rows} ${options().length}`;
    count.className = "visually-hidden";
  };
  const settle = () => {
    asking = null;
    list.removeAttribute("aria-busy");
    const act = later;
    later = null;
    act?.();
  };
  const ask = async () => {
    clearTimeout(waiting);
    const text = box.value;
    if (asking?.text === text) return; /* on its way */
    asking?.stop.abort();
    if (text === asked) return settle();
    asking = { text, stop: new AbortController() };
    list.ariaBusy = "true";
    try {
      const query = new URLSearchParams({ q: text, workspace, here: location.pathname });
      const answer = await fetch(`${address}?${query}`, { signal: asking.stop.signal, headers: { "HX-Request": "true" } });
      const login = answer.headers.get("HX-Redirect"); /* signed out */
      if (login) return location.assign(login);
      if (!answer.ok || answer.redirected) throw new Error(answer.status);
      show(text, all("section", new DOMParser().parseFromString(await answer.text(), "text/html").body));
      asked = text;
    } catch (error) {
      if (error.name === "AbortError") return;
      later = asked = null;
      show(text, []);
      count.textContent = palette.dataset.failed;
      count.className = "";
    }
    settle();
  };

  const open = () => {
    closeMenus();
    if (!palette.open) palette.showModal();
    box.select();
    choose(options()[0]);
    ask();
  };
  const go = (option, apart) => {
    if (apart && option.href) return window.open(option.href, "_blank", "noopener");
    palette.close();
    option.click();
  };
  box.addEventListener("input", () => {
    later = null;
    list.ariaBusy = "true"; /* the rows are those of another text */
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  });
  box.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const rows = options();
    const place = rows.indexOf(chosen());
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      choose(rows.at((place + (event.key === "ArrowDown" ? 1 : -1)) % rows.length));
    } else if (event.key === "Enter") {
      const apart = event.ctrlKey || event.metaKey;
      later = () => chosen() && go(chosen(), apart);
      ask();
    } else return;
    event.preventDefault();
  });
  palette.addEventListener("close", () => { later = null; });
  document.addEventListener("keydown", (event) => {
    if (keyOf(event).toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (palette.open) palette.close();
    else open();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
})();
