"use strict";

/* The graph of a memory: fetches the data, and lets people move, find, choose and filter. Drawn by graph-drawing.js. */
(async () => {
  const root = one("#graph"), canvas = one("canvas", root);
  const [card, panel, said, search, day] = ["#graph-card", "#graph-panel", "#graph-said", "#graph-search", "#graph-day"].map((id) => one(id));
  const words = root.dataset;
  const answer = await fetch(words.source, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok) return say(words.failed);
  const data = await answer.json();
  const nodes = data.nodes.map(([key, label, kind, x, y, size, community, degree, first], place) =>
    ({ key, label, wide: [x, y], kind: data.kinds[kind], name: data.names[kind], size, community, degree, first, place, links: [] }));
  const turn = () => { /* a picture that is wider than high stands upright on a phone */
    const isHigh = canvas.clientHeight > canvas.clientWidth;
    for (const node of nodes) [node.x, node.y] = isHigh ? [node.wide[1], node.wide[0]] : node.wide;
  };
  const edges = data.edges.map(([a, b, strength]) =>
    ({ a: nodes[a], b: nodes[b], strength, same: nodes[a].community === nodes[b].community }));
  for (const { a, b } of edges) { a.links.push(b); b.links.push(a); }
  const byKey = new Map(nodes.map((node) => [node.key, node]));
  const byDegree = [...nodes].sort((a, b) => b.degree - a.degree || a.place - b.place);

  root.hidden = false;
  turn();
  const drawing = graphDrawing(canvas, { kinds: data.kinds, nodes, edges });
  const { camera, look } = drawing;
  drawing.resize();
  Object.assign(camera, drawing.whole());
  drawing.repaint();

  /* What is shown: kinds of the legend, until the day of the slider. */
  const hidden = new Set();
  let until = "9999";
  look.shown = (node) => !hidden.has(node.kind) && node.first <= until;
  for (const box of all("[data-kind][type='checkbox']", root)) {
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(box.dataset.kind); else hidden.add(box.dataset.kind);
      drawing.repaint();
    });
  }

  /* Pointing at a node shows its first facts; choosing one opens the panel. */
  const known = new Map(); /* facts by key, once fetched */
  let pointed = null, chosen = null, timer = 0;
  const swatch = (node) => {
    const mark = one(`.graph-legend svg[data-kind="${node.kind}"]`, root).cloneNode(true);
    one("svg", card).replaceWith(mark);
  };
  const putCard = (node) => {
    const [x, y] = drawing.toScreen(node);
    const { clientWidth, clientHeight } = canvas;
    const left = Math.max(8, Math.min(x + 14, clientWidth - card.offsetWidth - 8));
    const below = y + 18 + card.offsetHeight < clientHeight;
    card.style.transform = `translate(${left}px, ${below ? y + 18 : Math.max(8, y - 14 - card.offsetHeight)}px)`;
  };
  const showCard = async (node) => {
    swatch(node);
    one("strong", card).textContent = node.label;
    one("#graph-facts").replaceChildren();
    card.hidden = false;
    putCard(node);
    if (!known.has(node.key)) {
      const found = await fetch(`${words.facts}?${new URLSearchParams({ node: node.key })}`, { headers: { "HX-Request": "true" } }).catch(() => null);
      if (!found?.ok) return;
      known.set(node.key, await found.text());
    }
    if (pointed !== node) return;
    htmx.swap("#graph-facts", known.get(node.key), { swapStyle: "innerHTML" });
    putCard(node);
  };
  const point = (node) => {
    if (node === pointed) return;
    pointed = node;
    clearTimeout(timer);
    card.hidden = true;
    canvas.toggleAttribute("data-over", Boolean(node));
    look.chosen = node ?? chosen;
    if (node) timer = setTimeout(() => showCard(node), 180);
    drawing.redraw();
  };
  const tell = (node) => {
    said.textContent = words.said.replace("{name}", node.label).replace("{kind}", node.name).replace("{count}", node.degree);
  };
  const open = (node, { focus = false } = {}) => {
    [chosen, look.chosen] = [node, node];
    point(null);
    look.chosen = node;
    panel.hidden = false;
    history.replaceState(history.state, "", `#${new URLSearchParams({ node: node.key })}`);
    htmx.ajax("GET", `${words.node}?${new URLSearchParams({ node: node.key })}`, { target: "#graph-node", swap: "outerHTML" })
      .then(() => { if (focus) one("#graph-node")?.focus({ preventScroll: true }); });
    tell(node);
    const [x] = drawing.toScreen(node);
    if (innerWidth > 640 && x > canvas.clientWidth - panel.offsetWidth - 60) drawing.flyTo({ ...camera, x: node.x + panel.offsetWidth / 2 / camera.k });
    drawing.redraw();
  };
  const close = () => {
    [chosen, look.chosen] = [null, null];
    const hadFocus = panel.contains(document.activeElement);
    panel.hidden = true;
    history.replaceState(history.state, "", location.pathname + location.search);
    if (hadFocus) canvas.focus({ preventScroll: true });
    drawing.redraw();
  };
  const goTo = (node) => {
    const k = Math.max(camera.k, drawing.whole().k * 2.2);
    const room = innerWidth > 640 && !panel.hidden ? panel.offsetWidth / 2 / k : 0;
    drawing.flyTo({ x: node.x + room, y: node.y, k });
  };
  one(".graph-close", panel).addEventListener("click", close);
  panel.addEventListener("click", (event) => {
    const node = byKey.get(event.target.closest("a[data-node]")?.dataset.node);
    if (!node || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    open(node, { focus: true });
    goTo(node);
  });

  /* Pointers: one moves, two zoom, a click without a move chooses. */
  const pointers = new Map();
  let moved = 0;
  const spot = ({ clientX, clientY }) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  const spread = () => {
    const [[x1, y1], [x2, y2]] = [...pointers.values()];
    return { gap: Math.hypot(x1 - x2, y1 - y2), x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, spot(event));
    moved = pointers.size > 1 ? 99 : 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = spot(event);
    const before = pointers.get(event.pointerId);
    if (!before) return point(drawing.nodeAt(x, y));
    const was = pointers.size === 2 ? spread() : null;
    pointers.set(event.pointerId, [x, y]);
    moved += Math.hypot(x - before[0], y - before[1]);
    if (was) {
      const now = spread();
      drawing.zoomAt(now.gap / was.gap, now.x, now.y);
      drawing.moveBy(now.x - was.x, now.y - was.y);
    } else if (moved > 4) { point(null); drawing.moveBy(x - before[0], y - before[1]); }
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (moved > 4) return drawing.repaint();
    if (event.type !== "pointerup") return;
    const node = drawing.nodeAt(...spot(event), event.pointerType === "touch" ? 16 : 6);
    if (node) open(node); else if (chosen) close();
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    drawing.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...spot(event));
  }, { passive: false });

  /* Buttons and keys. */
  const zoom = { in: () => drawing.flyTo({ ...camera, k: camera.k * 1.5 }), out: () => drawing.flyTo({ ...camera, k: camera.k / 1.5 }), fit: () => drawing.flyTo(drawing.whole()) };
  for (const button of all("[data-zoom]", root)) button.addEventListener("click", () => zoom[button.dataset.zoom]());
  const walk = (step) => {
    const list = byDegree.filter(look.shown);
    if (!list.length) return;
    const here = list.indexOf(pointed ?? chosen);
    const node = list[here < 0 ? 0 : (here + step + list.length) % list.length];
    const [x, y] = drawing.toScreen(node);
    point(node);
    tell(node);
    if (x < 40 || y < 40 || x > canvas.clientWidth - 40 || y > canvas.clientHeight - 40) { card.hidden = true; drawing.flyTo({ ...camera, x: node.x, y: node.y }); }
  };
  const keys = {
    ArrowRight: () => walk(1), ArrowDown: () => walk(1), ArrowLeft: () => walk(-1), ArrowUp: () => walk(-1),
    Enter: () => { if (pointed) open(pointed, { focus: true }); }, "+": zoom.in, "=": zoom.in, "-": zoom.out, 0: zoom.fit,
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  canvas.addEventListener("blur", () => point(null));
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || (!chosen && !pointed)) return;
    event.stopPropagation();
    if (pointed) point(null); else close();
  });

  /* Finding: matches stand out while typing; Enter goes from one to the next. */
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const names = new Map(nodes.map((node) => [node, plain(node.label)]));
  one("#graph-names").append(...nodes.slice(0, 300).map(({ label }) => Object.assign(document.createElement("option"), { value: label })));
  let match = -1;
  const matching = () => {
    const text = plain(search.value.trim());
    return text ? nodes.filter((node) => look.shown(node) && names.get(node).includes(text)) : [];
  };
  search.addEventListener("input", () => {
    const found = matching();
    match = -1;
    look.matches = search.value.trim() ? new Set(found) : null;
    if (look.matches && !found.length) said.textContent = words.none;
    drawing.redraw();
    if (found.length === 1) goTo(found[0]);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const text = plain(search.value.trim());
    const found = matching().sort((a, b) => (names.get(b) === text) - (names.get(a) === text) || a.place - b.place);
    if (!found.length) return;
    match = (match + 1) % found.length;
    open(found[match]);
    goTo(found[match]);
  });

  /* Growth: nodes appear on the day they were first mentioned. */
  const days = [...new Set(nodes.map(({ first }) => first).filter(Boolean))].sort();
  const output = one("output", day.parentElement), play = one("[data-play]", root);
  const written = dateFormat({ dateStyle: "medium", timeZone: "UTC" });
  const setDay = () => {
    const place = Number(day.value);
    until = place >= days.length - 1 ? "9999" : days[place];
    output.textContent = words.until.replace("{day}", written.format(new Date(`${days[place]}T00:00:00Z`)));
    day.setAttribute("aria-valuetext", output.textContent);
    drawing.repaint();
  };
  if (days.length > 1) {
    day.max = days.length - 1;
    day.value = day.max;
    day.parentElement.hidden = false;
    setDay();
    let playing = 0;
    const stop = () => { clearInterval(playing); playing = 0; play.setAttribute("aria-pressed", "false"); };
    day.addEventListener("input", () => { stop(); setDay(); });
    play.addEventListener("click", () => {
      if (playing) return stop();
      if (Number(day.value) >= days.length - 1) day.value = 0;
      setDay();
      play.setAttribute("aria-pressed", "true");
      const pause = drawing.still.matches ? 800 : 60; /* fewer, larger steps for those who want less motion */
      const step = Math.max(1, Math.round(days.length * pause / 9000));
      playing = setInterval(() => {
        day.value = Number(day.value) + step;
        setDay();
        if (Number(day.value) >= days.length - 1) stop();
      }, pause);
    });
  }
  const linked = byKey.get(new URLSearchParams(location.hash.slice(1)).get("node"));
  if (linked) { open(linked); goTo(linked); }
})();
