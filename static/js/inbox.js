"use strict";

/* The inbox: keys press the buttons of the detail, and the selected item stays in view. */
(() => {
  pageKeys.push((key) => one("[data-inbox]") && key.length === 1 && follow(`main [data-key="${CSS.escape(key)}"]`));
  const isNarrow = matchMedia("(width < 60rem)");
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (target.id !== "inbox") return;
    if (isNarrow.matches) scrollTo({ top: 0, behavior: "instant" });
    else one("#inbox [aria-current='true']")?.scrollIntoView({ block: "nearest" });
  });
  /* The text of the row that is kept, unless the person has changed it. */
  document.addEventListener("change", ({ target }) => {
    const box = target.matches("[name='stays']") && one("[data-merged]", target.form);
    const texts = box ? all("[name='stays']", target.form).map((row) => row.dataset.text) : [];
    if (texts.includes(box?.value)) box.value = target.dataset.text;
  });
})();
