"use strict";

/* The fields of a form survive a lost connection or login, as a document's text does; app.js drops them when they are
   saved. If the form was sent and no page of the hub followed, nobody knows whether they were. */
(() => {
  const form = one("[data-drafts]");
  if (!form) return;
  const key = form.dataset.drafts;
  const fields = all(":is(textarea, input[type='text'])[name]", form);
  if (!fields.length) return;
  const words = sentForm === key ? sentences.lost : sentences.restored;
  if (keepDraft(key, fields, null, words)) form.closest("details")?.setAttribute("open", "");
  form.addEventListener("submit", () => sessionStorage.setItem("unsaved-sent", key));
})();
