"use strict";

/* The parts of a held change: counts, and keys that decide the current part. */
(() => {
  const form = () => one("[data-parts]");
  const parts = () => all("[data-parts] [data-part]");
  const decision = (part) => one("input[type='radio']:checked", part)?.value ?? "";
  const isOpen = (part) => !decision(part);
  const count = () => {
    const output = one("[data-parts] [data-count]");
    if (!output) return;
    const values = parts().map(decision);
    const of = (value) => values.filter((found) => found === value).length;
    output.textContent = output.dataset.count.replace("{accepted}", of("accept")).replace("{rejected}", of("reject")).replace("{waiting}", of(""));
    const submit = one("[data-submit]", form());
    if (submit) submit.disabled = !values.some(Boolean);
  };
  const current = () => {
    const part = document.activeElement.closest("[data-part]");
    return part && isOpen(part) ? part : parts().find(isOpen) ?? part;
  };
  const focusOn = (part) => {
    one("input:checked, input", part)?.focus({ preventScroll: true });
    part.scrollIntoView({ block: "nearest" });
  };
  const decide = (value) => {
    const isQuick = form().hasAttribute("data-auto");
    const isDecided = !parts().some(isOpen);
    if (isQuick && isDecided) {
      const button = value === "reject" ? one("[name='all'][value='reject']", form()) : one("[data-submit], [value='accept'][name='all']", form());
      button?.click();
      return Boolean(button);
    }
    const part = isQuick ? parts().find(isOpen) : current();
    const box = part && one(`input[value='${value}']`, part);
    if (!box) return false;
    box.checked = true;
    count();
    const next = parts().find(isOpen);
    if (next) focusOn(next);
    else if (isQuick) form().requestSubmit(one("[data-submit]", form()) ?? undefined);
    else (one("[data-submit]", form()) ?? box).focus();
    return true;
  };
  const move = (by) => {
    const places = parts();
    const part = places[places.indexOf(document.activeElement.closest("[data-part]")) + by];
    if (part) focusOn(part);
    return Boolean(part);
  };
  pageKeys.push((key) => {
    if (!form() || form().closest("[inert]")) return false;
    if (!one("[data-part] input", form())) return key.length === 1 && follow(`[data-key="${CSS.escape(key)}"]`, form());
    if (key === "a") return decide("accept");
    if (key === "r") return decide("reject");
    if (form().hasAttribute("data-auto")) return false;
    if (key === "j") return move(1);
    if (key === "k") return move(-1);
    return false;
  });
  document.addEventListener("change", ({ target }) => { if (target.closest("[data-part]")) count(); });
  for (const shown of ["htmx:afterSettle", "item-shown"]) document.addEventListener(shown, count);
  count();
  addEventListener("pageshow", count); /* after Back the browser fills in the choices later */
  const edit = location.hash === "#edit" && one("details#edit");
  if (edit) edit.open = true;
})();
