"use strict";

/* A link to plain text copies that text. Where it can't (no clipboard, signed out, an error), the link is followed. */
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-copy-from]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !navigator.clipboard) return;
  event.preventDefault();
  const word = link.parentElement.querySelector(".copy-said");
  const say = (text) => { word.textContent = text; };
  say("");
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(link.href, { headers: { Accept: "text/plain" } });
    if (!answer.ok || answer.redirected) throw new Error(`status ${answer.status}`);
    await navigator.clipboard.writeText(await answer.text());
    say(link.dataset.said);
    setTimeout(() => say(""), 4000);
  } catch {
    say(link.dataset.refused);
    location.assign(link.href);
  } finally {
    link.removeAttribute("aria-busy");
  }
});
