"use strict";

/* Choose the format by the file's suffix. */
document.addEventListener("change", ({ target }) => {
  if (target.name !== "import_file" || !target.files.length) return;
  const suffix = target.files[0].name.split(".").pop().toUpperCase();
  const format = target.form.elements.format;
  format.selectedIndex = Math.max(0, [...format.options].findIndex((option) => option.text === suffix));
});
