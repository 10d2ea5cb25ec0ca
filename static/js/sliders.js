"use strict";

/* A slider beside a number field: each follows the other. The field alone is sent, and works without the slider. */
document.querySelectorAll("[data-slider]").forEach((slider) => {
  const field = document.getElementById(slider.dataset.slider);
  slider.hidden = false;
  slider.addEventListener("input", (event) => {
    event.stopPropagation();
    field.value = slider.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  slider.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("input", (event) => {
    if (event.isTrusted) slider.value = field.value;
  });
});

/* A slider of moments, in seconds since 1970, says which one it is at. */
document.querySelectorAll("[data-moment-of]").forEach((output) => {
  const slider = document.getElementById(output.dataset.momentOf);
  const format = dateFormat({ dateStyle: "medium", timeStyle: "short" });
  const say = () => {
    output.textContent = format.format(new Date(slider.valueAsNumber * 1000));
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", say);
  say();
});
