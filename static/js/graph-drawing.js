"use strict";

/* Draws a graph on a canvas. ``graph.nodes``: { label, kind, x, y, size, community, degree, links }, the most important
   first; ``graph.edges``: { a, b, strength, same }. ``look``: { shown(node), chosen, matches } decides how.
   The graph is painted on a sheet larger than the view. While it moves, the sheet is only copied; once it rests, it is
   painted again. What is chosen is drawn on top. */
const graphDrawing = (canvas, graph) => {
  const view = canvas.getContext("2d", { alpha: false });
  const sheet = document.createElement("canvas");
  const paper = sheet.getContext("2d", { alpha: false });
  const painted = { x: 0, y: 0, k: 0 }; /* the camera of the sheet; k is 0 if it has to be painted again */
  let pen = view;
  const camera = { x: 0, y: 0, k: 1 }; /* the middle of the view and its scale */
  const look = { shown: () => true, chosen: null, matches: null };
  const tags = new Map(); /* drawn labels, by node */
  const EDGES = [[0.45, 0.42, 0.9], [0.22, 0.28, 0.8], [0, 0.17, 0.7]]; /* from a strength on: alpha, width */
  let colours = {}, halos = {}, mist = null, width = 1, height = 1, ratio = 1, asked = 0, rest = 0, labels = [], aside = 0;

  const css = (name) => getComputedStyle(canvas).getPropertyValue(name).trim();
  const colour = (name) => { /* light-dark() is resolved by the browser, not by the canvas */
    canvas.style.color = `var(--${name})`;
    const { color } = getComputedStyle(canvas);
    canvas.style.color = "";
    return color;
  };
  const readColours = () => {
    colours = Object.fromEntries(graph.kinds.map((kind) => [kind, colour(`kind-${kind}`)]));
    for (const name of ["ink", "ink-2", "ink-3", "accent", "surface"]) colours[name] = colour(name);
    colours.ground = colour("graph-ground");
    colours.font = css("font-family");
    tags.clear();
    halos = Object.fromEntries(graph.kinds.map((kind) => [kind, drawSpot(colours[kind])]));
    mist = drawMist();
  };
  const drawSpot = (shade) => { /* a soft round spot; "transparent" would fade through black */
    const sheet = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
    const brush = sheet.getContext("2d");
    const gradient = brush.createRadialGradient(32, 32, 0, 32, 32, 32);
    const faded = shade.replace(/^rgba?\(([^)]*)\)$/, (_all, parts) => `rgba(${parts.split(/[\s,/]+/).slice(0, 3).join(", ")}, 0)`);
    gradient.addColorStop(0, shade);
    gradient.addColorStop(1, faded);
    brush.fillStyle = gradient;
    brush.fillRect(0, 0, 64, 64);
    return sheet;
  };

  /* A faint mist behind each community, drawn once. */
  const MIST = 512, EDGE_OF_MIST = 1150;
  const drawMist = () => {
    const sheet = Object.assign(document.createElement("canvas"), { width: MIST, height: MIST });
    const brush = sheet.getContext("2d", { alpha: false }); /* on the ground: faint colours alone are too coarse */
    brush.fillStyle = colours.ground;
    brush.fillRect(0, 0, MIST, MIST);
    const sprite = drawSpot(colours.accent);
    const sizes = new Map();
    for (const node of graph.nodes) sizes.set(node.community, (sizes.get(node.community) ?? 0) + 1);
    const spread = Math.max(26, Math.min(110, 1500 / Math.sqrt(graph.nodes.length)));
    for (const node of graph.nodes) {
      if (sizes.get(node.community) < 3) continue;
      const reach = (spread + node.size * 2) * MIST / (2 * EDGE_OF_MIST);
      brush.globalAlpha = Math.min(0.12, 0.03 + 6 / graph.nodes.length);
      brush.drawImage(sprite, (node.x / EDGE_OF_MIST + 1) * MIST / 2 - reach, (node.y / EDGE_OF_MIST + 1) * MIST / 2 - reach, 2 * reach, 2 * reach);
    }
    return sheet;
  };

  const FIRST = { person: 4, project: 4, section: 1.6, session: 1.2 }; /* whose labels come first */
  const byWeight = [...graph.nodes].sort((a, b) => b.size * (FIRST[b.kind] ?? 1) - a.size * (FIRST[a.kind] ?? 1) || a.place - b.place);
  const growth = () => Math.min(2.4, Math.max(0.32, Math.sqrt(camera.k))); /* nodes grow slower than the distances */
  const radius = (node) => Math.max(1.4, node.size * 0.62 * growth() * Math.min(1.5, Math.max(0.72, 12 / Math.sqrt(graph.nodes.length) + 0.45)));
  const toScreen = (node) => [(node.x - camera.x) * camera.k + width / 2, (node.y - camera.y) * camera.k + height / 2];
  const isInView = (x, y, room) => x > -room && y > -room && x < width + room && y < height + room;

  const SHAPES = {
    project: (x, y, r) => { pen.moveTo(x, y - r * 1.2); pen.lineTo(x + r * 1.2, y); pen.lineTo(x, y + r * 1.2); pen.lineTo(x - r * 1.2, y); pen.closePath(); },
    section: (x, y, r) => { pen.roundRect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8, r * 0.4); },
    tag: (x, y, r) => { pen.moveTo(x, y - r * 1.15); pen.lineTo(x + r * 1.1, y + r * 0.85); pen.lineTo(x - r * 1.1, y + r * 0.85); pen.closePath(); },
    other: (x, y, r) => { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 7); },
  };
  const drawNodes = (nodes, alpha) => {
    const byKind = new Map(graph.kinds.map((kind) => [kind, []]));
    for (const node of nodes) {
      const [x, y] = toScreen(node);
      if (isInView(x, y, 40)) byKind.get(node.kind).push([x, y, radius(node)]);
    }
    for (const [kind, places] of [...byKind].reverse()) { /* people on top of terms */
      pen.globalAlpha = alpha * 0.34;
      if (kind !== "term") for (const [x, y, r] of places) pen.drawImage(halos[kind], x - 3 * r, y - 3 * r, 6 * r, 6 * r);
      pen.globalAlpha = alpha;
      pen.beginPath();
      for (const [x, y, r] of places) (SHAPES[kind] ?? SHAPES.other)(x, y, r);
      pen.strokeStyle = colours.ground;
      pen.lineWidth = 2.5;
      pen.stroke();
      pen.fillStyle = colours[kind];
      pen.fill();
      if (kind !== "session") continue;
      pen.beginPath(); /* a ring */
      for (const [x, y, r] of places) if (r > 2.5) SHAPES.other(x, y, r * 0.5);
      pen.fillStyle = colours.ground;
      pen.fill();
    }
    pen.globalAlpha = 1;
  };
  const drawEdges = (edges) => {
    pen.strokeStyle = colours.ink;
    const lists = EDGES.map(() => []);
    for (const edge of edges) {
      const level = EDGES.findIndex(([least]) => edge.strength >= least);
      lists[Math.min(EDGES.length - 1, level + (edge.same ? 0 : 1))].push(edge);
    }
    lists.forEach((list, level) => {
      pen.beginPath();
      for (const { a, b } of list) {
        const [x1, y1] = toScreen(a), [x2, y2] = toScreen(b);
        if (Math.max(x1, x2) < 0 || Math.max(y1, y2) < 0 || Math.min(x1, x2) > width || Math.min(y1, y2) > height) continue;
        pen.moveTo(x1, y1);
        pen.lineTo(x2, y2);
      }
      pen.globalAlpha = EDGES[level][1];
      pen.lineWidth = EDGES[level][2]; /* below one pixel: many wider lines are slow */
      pen.stroke();
    });
    pen.globalAlpha = 1;
  };

  /* Labels are drawn once each, and copied. The most important come first; the others only where there is room. */
  const tagOf = (node, strong) => {
    const id = `${strong ? "!" : ""}${node.place}`;
    if (tags.has(id)) return tags.get(id);
    const size = Math.round(10.5 + Math.min(4, node.size / 5));
    const text = node.label.length > 28 ? `${node.label.slice(0, 27)}…` : node.label;
    const font = `${strong || node.kind !== "term" ? 600 : 450} ${size}px ${colours.font}`;
    pen.font = font;
    const sheet = document.createElement("canvas");
    const wide = Math.ceil(pen.measureText(text).width) + 8, high = Math.ceil(size * 1.5) + 4;
    Object.assign(sheet, { width: wide * ratio, height: high * ratio });
    const brush = sheet.getContext("2d");
    brush.scale(ratio, ratio);
    Object.assign(brush, { font, textBaseline: "middle", textAlign: "center", lineJoin: "round", lineWidth: 3.5, strokeStyle: colours.ground, fillStyle: strong || node.kind !== "term" ? colours.ink : colours["ink-2"] });
    brush.strokeText(text, wide / 2, high / 2);
    brush.fillText(text, wide / 2, high / 2);
    tags.set(id, { sheet, wide, high });
    return tags.get(id);
  };
  const placesOf = (node, { wide, high }) => { /* below, above, after, before: boxes around the node, within the view */
    const [x, y] = toScreen(node), r = radius(node) + 1;
    const [first, last] = [aside, width - aside - wide];
    const inside = (left) => (x < aside || x > width - aside || last < first ? left : Math.min(last, Math.max(first, left)));
    const fits = (left) => left === inside(left);
    const boxes = [[inside(x - wide / 2), y + r, wide, high], [inside(x - wide / 2), y - r - high, wide, high], [x + r, y - high / 2, wide, high], [x - r - wide, y - high / 2, wide, high]];
    return boxes.map((box) => (fits(box[0]) ? box : boxes[0]));
  };
  const meets = (one, other) => one[0] < other[0] + other[2] && other[0] < one[0] + one[2] && one[1] < other[1] + other[3] && other[1] < one[1] + one[3];
  const chooseLabels = () => {
    const cells = new Map(), list = [];
    const room = 24 + Math.round(width * height / 9000);
    for (const node of byWeight) {
      if (list.length >= room) break;
      if (!look.shown(node)) continue;
      const [x, y] = toScreen(node);
      if (!isInView(x, y, 60)) continue;
      const sides = placesOf(node, tagOf(node));
      node.side = sides.findIndex((box) => {
        const [left, top] = [Math.floor(box[0] / 80), Math.floor(box[1] / 40)];
        for (let i = left - 3; i <= left + 3; i += 1) {
          for (let j = top - 1; j <= top + 1; j += 1) if (cells.get(`${i},${j}`)?.some((other) => meets(box, other))) return false;
        }
        const key = `${left},${top}`;
        cells.set(key, [...(cells.get(key) ?? []), box]);
        return true;
      });
      if (node.side >= 0) list.push(node);
    }
    labels = list;
  };
  const drawLabels = (nodes, strong) => {
    for (const node of nodes) {
      const tag = tagOf(node, strong);
      const [x, y] = placesOf(node, tag)[Math.max(0, node.side ?? 0)];
      if (isInView(x, y, 200)) pen.drawImage(tag.sheet, Math.round(x), Math.round(y), tag.wide, tag.high);
    }
  };

  const margin = (size) => Math.round(size * 0.35); /* of the view, on each side of the sheet */
  const paint = () => {
    const [wide, high] = [width, height];
    pen = paper;
    [aside, width, height] = [margin(wide), wide + 2 * margin(wide), high + 2 * margin(high)];
    if (sheet.width !== Math.round(width * ratio) || sheet.height !== Math.round(height * ratio)) {
      Object.assign(sheet, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colours.ground;
    pen.fillRect(0, 0, width, height);
    const reach = EDGE_OF_MIST * camera.k;
    const [mx, my] = toScreen({ x: 0, y: 0 });
    pen.drawImage(mist, mx - reach, my - reach, 2 * reach, 2 * reach);
    drawEdges(graph.edges.filter(({ a, b }) => look.shown(a) && look.shown(b)));
    drawNodes(graph.nodes.filter(look.shown), 1);
    chooseLabels();
    drawLabels(labels);
    Object.assign(painted, camera);
    [aside, width, height, pen] = [0, wide, high, view];
  };
  const isCovered = () => { /* whether the sheet shows all of the view, neither too coarse nor too small */
    const scale = camera.k / painted.k;
    if (!(scale > 0.45 && scale < 2.6)) return false;
    const room = (size) => Math.max(0, (size / 2 + margin(size)) * scale - size / 2) + (scale < 1 ? size : 0);
    return Math.abs(camera.x - painted.x) * camera.k <= room(width) && Math.abs(camera.y - painted.y) * camera.k <= room(height);
  };
  const draw = () => {
    asked = 0;
    if (!painted.k || !isCovered()) paint();
    const scale = camera.k / painted.k;
    const [wide, high] = [(width + 2 * margin(width)) * scale, (height + 2 * margin(height)) * scale];
    const [x, y] = toScreen(painted);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colours.ground;
    pen.fillRect(0, 0, width, height);
    const still = scale === 1 ? Math.round : Number; /* whole pixels stay sharp */
    pen.drawImage(sheet, still(x - wide / 2), still(y - high / 2), wide, high);
    if (look.chosen || look.matches) drawChosen();
  };
  const drawChosen = () => {
    const { chosen, matches } = look;
    pen.globalAlpha = 0.8;
    pen.fillRect(0, 0, width, height); /* a veil */
    pen.globalAlpha = 1;
    const near = chosen ? chosen.links.filter(look.shown) : graph.nodes.filter((node) => look.shown(node) && matches.has(node));
    if (chosen) {
      pen.strokeStyle = colours.accent;
      pen.globalAlpha = 0.75;
      pen.lineWidth = 1.4;
      pen.beginPath();
      for (const node of near) { pen.moveTo(...toScreen(chosen)); pen.lineTo(...toScreen(node)); }
      pen.stroke();
      drawNodes([...near, chosen], 1);
      const [x, y] = toScreen(chosen);
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(x, y, radius(chosen) + 5, 0, 7);
      pen.stroke();
    } else drawNodes(near, 1);
    drawLabels(near.slice(0, 40));
    if (chosen) drawLabels([chosen], true);
  };
  const redraw = () => { if (!asked) asked = requestAnimationFrame(draw); };
  const repaint = () => { clearTimeout(rest); painted.k = 0; redraw(); };
  const moved = () => { /* painted again once it rests */
    clearTimeout(rest);
    rest = setTimeout(repaint, 160);
    redraw();
  };

  const resize = () => {
    const { clientWidth, clientHeight } = canvas;
    if (!clientWidth) return;
    [width, height, ratio] = [clientWidth, clientHeight, Math.min(2, devicePixelRatio || 1)];
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    tags.clear();
    repaint();
  };
  const LEAST = 0.08, MOST = 12;
  const zoomAt = (factor, x = width / 2, y = height / 2) => { /* the place under the pointer stays */
    const k = Math.min(MOST, Math.max(LEAST, camera.k * factor));
    camera.x += (x - width / 2) * (1 / camera.k - 1 / k);
    camera.y += (y - height / 2) * (1 / camera.k - 1 / k);
    camera.k = k;
    moved();
  };
  const moveBy = (dx, dy) => { camera.x -= dx / camera.k; camera.y -= dy / camera.k; moved(); };
  const whole = () => {
    const xs = graph.nodes.map(({ x }) => x), ys = graph.nodes.map(({ y }) => y);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const k = Math.min((width - 110) / Math.max(200, right - left), (height - 80) / Math.max(200, bottom - top));
    return { x: (left + right) / 2, y: (top + bottom) / 2, k: Math.min(MOST, Math.max(LEAST, k)) };
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const flyTo = (goal) => {
    if (still.matches) { Object.assign(camera, goal); return repaint(); }
    const from = { ...camera }, start = performance.now();
    const step = (now) => {
      const share = Math.min(1, (now - start) / 320), eased = 1 - (1 - share) ** 3;
      for (const name of ["x", "y", "k"]) camera[name] = from[name] + (goal[name] - from[name]) * eased;
      if (share < 1) requestAnimationFrame(step);
      if (share < 1) redraw(); else repaint();
    };
    requestAnimationFrame(step);
  };
  const nodeAt = (x, y, reach = 6) => {
    let best = null, least = Infinity;
    for (const node of graph.nodes) {
      if (!look.shown(node)) continue;
      const [nx, ny] = toScreen(node);
      const gap = Math.hypot(nx - x, ny - y) - radius(node);
      if (gap < reach && gap < least) [best, least] = [node, gap];
    }
    return best;
  };

  readColours();
  new ResizeObserver(resize).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); repaint(); });
  new MutationObserver(() => { readColours(); repaint(); }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return { camera, look, redraw, repaint, resize, zoomAt, moveBy, flyTo, whole, nodeAt, toScreen, still };
};
