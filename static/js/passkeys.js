"use strict";

/* Passkeys: a form asks the hub for a challenge, the browser lets a device answer it, and the hub checks the answer. */
(() => {
  const isSupported = Boolean(window.PublicKeyCredential?.parseRequestOptionsFromJSON);
  for (const form of all("form[data-passkey]")) form.hidden = !isSupported || form.dataset.origin !== location.origin;
  for (const note of all("[data-no-passkeys]")) note.hidden = !one(note.dataset.noPasskeys).hidden;

  /* Returns what the hub says, or nothing after saying why. */
  const send = async (address, form, credential) => {
    const body = new FormData(form);
    if (credential) body.set("credential", JSON.stringify(credential));
    const answer = await fetch(address, { method: "POST", body });
    if (answer.redirected) return location.reload(); /* signed out */
    const isRead = answer.headers.get("Content-Type")?.startsWith("application/json");
    const said = isRead ? await answer.json() : {};
    if (answer.ok && isRead) return said;
    say(said.message ?? sentences[answer.status] ?? sentences.error.replace("{status}", answer.status));
  };
  const fromDevice = async (form, options) => {
    try {
      return form.dataset.passkey === "add"
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
    } catch (error) {
      say(error.name === "InvalidStateError" ? form.dataset.known : form.dataset.unused);
    }
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-passkey]");
    if (!form) return;
    event.preventDefault();
    const button = event.submitter ?? one("button", form);
    if (button.getAttribute("aria-busy")) return;
    button.setAttribute("aria-busy", "true");
    try {
      const asked = await send(form.dataset.options, form);
      const credential = asked && await fromDevice(form, asked.options);
      const done = credential && await send(form.action, form, credential.toJSON());
      if (done) location.assign(done.next);
    } catch {
      say(sentences.unreachable);
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
})();
