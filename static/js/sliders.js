"use strict";

/* A slider beside a field for a number, or for a date and time, which the slider has in seconds: each follows the
   other. The field alone is sent, and works without the slider. */
document.querySelectorAll("[data-slider]").forEach((slider) => {
  const field = document.getElementById(slider.dataset.slider);
  const scale = field.type === "datetime-local" ? 1000 : 1;
  slider.hidden = false;
  const say = () => {
    if (scale > 1) slider.setAttribute("aria-valuetext", field.value.replace("T", " "));
  };
  slider.addEventListener("input", (event) => {
    event.stopPropagation();
    field.valueAsNumber = slider.valueAsNumber * scale;
    say();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  slider.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("input", () => {
    if (field.value) slider.value = field.valueAsNumber / scale;
    say();
  });
  say();
});
