"use strict";

/* The fields of a form survive a lost connection or login, as a document's text does; app.js drops them when they are
   saved. If the form was sent and no page of the hub followed, nobody knows whether they were. */
(() => {
  const drafts = one("[data-drafts]");
  if (drafts) {
    const key = `draft:${drafts.dataset.drafts}`;
    const fields = all(":is(textarea, input[type='text'])[name]", drafts);
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "{}");
    const changed = fields.filter(({ name, value }) => name in kept && kept[name] !== value);
    for (const field of changed) field.value = kept[field.name];
    if (changed.length) {
      sayRestored(() => {
        for (const field of changed) field.value = field.defaultValue;
        forget(drafts.dataset.drafts);
      }, sentForm === drafts.dataset.drafts ? sentences.lost : sentences.restored);
      drafts.closest("details")?.setAttribute("open", "");
    }
    drafts.addEventListener("input", () => sessionStorage.setItem(key, JSON.stringify(Object.fromEntries(fields.map(({ name, value }) => [name, value])))));
    drafts.addEventListener("submit", () => sessionStorage.setItem("draft-sent", drafts.dataset.drafts));
    one("[data-give-up]", drafts)?.addEventListener("click", () => forget(drafts.dataset.drafts));
  }
})();
