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
  slider.addEventListener("keydown", (event) => { /* a second at a time would lead nowhere */
    const right = getComputedStyle(slider).direction === "rtl" ? -1 : 1;
    const by = { ArrowLeft: -right, ArrowDown: -1, ArrowRight: right, ArrowUp: 1 }[event.key];
    if (scale === 1 || !by) return;
    event.preventDefault();
    slider.valueAsNumber += by * Math.max(1, Math.round((slider.max - slider.min) / 200));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
  slider.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("input", () => {
    if (field.value) slider.value = field.valueAsNumber / scale;
    say();
  });
  say();
});
