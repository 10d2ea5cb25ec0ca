"use strict";

/* A preview is asked for by POST, so that what it looks for is in no address. Back and Reload ask for it again, where the
   browser would show a warning. data-preview names the fields. */
(() => {
  const form = one("form[data-preview]");
  if (form.dataset.answers) {
    const fields = new FormData(form);
    const asked = Object.fromEntries(form.dataset.preview.split(" ").map((name) => [name, fields.getAll(name)]));
    history.replaceState({ ...history.state, asked }, "", form.dataset.answers);
  } else if (history.state?.asked) {
    htmx.ajax("POST", location.pathname, { values: history.state.asked, source: "#main", target: "#main", select: "#main", swap: "outerHTML" });
  }
})();
