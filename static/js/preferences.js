"use strict";

/* The browser's time zone, told once and when it changes; the switch of the theme without a new page. */
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  if (zone && !document.cookie.split("; ").includes(`zone=${zone}`)) {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
  }

  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-switch]");
    if (!form) return;
    event.preventDefault();
    const theme = event.submitter.value;
    const root = document.documentElement;
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    one("meta[name='color-scheme']").content = theme || "light dark";
    for (const button of all("button", form)) button.setAttribute("aria-pressed", String(button === event.submitter));
    fetch(form.action, { method: "POST", body: new FormData(form, event.submitter), redirect: "manual" })
      .catch(() => say(sentences.unreachable));
  });
})();
