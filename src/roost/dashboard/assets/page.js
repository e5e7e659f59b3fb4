// @ts-check
// Requests that change something carry the header token of the session. A form or button with `data-post` is sent by
// fetch: the answer may lead to another page (HX-Redirect), or is shown in place of the content.
//
//   <form data-post="/ui/actions/…">…</form>      its fields are the body
//   <button data-post="/ui/logout">                without a body

const guard = document.querySelector('meta[name="roost-session"]')?.getAttribute("content") ?? "";

// A parsed page runs no script; its text is the dashboard's own.
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("roost-page", {
  createHTML: (/** @type {string} */ each) => each,
});
const trusted = (/** @type {string} */ text) => policy?.createHTML(text) ?? text;

document.addEventListener("htmx:config:request", (event) => {
  const request = /** @type {any} */ (event).detail.ctx.request;
  if (request.method && !/^(GET|HEAD)$/i.test(request.method)) request.headers["X-Roost-Session"] = guard;
});

/**
 * @param {string} address
 * @param {URLSearchParams} [fields]
 */
async function post(address, fields) {
  const answer = await fetch(address, { method: "POST", body: fields, headers: { "X-Roost-Session": guard } });
  const next = answer.headers.get("HX-Redirect") ?? (answer.redirected ? answer.url : null);
  if (next) return location.assign(next);
  const page = new DOMParser().parseFromString(/** @type {any} */ (trusted(await answer.text())), "text/html");
  const content = page.querySelector("#main");
  const here = document.querySelector("#main");
  if (!content || !here) return location.reload();
  here.replaceWith(document.adoptNode(content));
  document.title = page.title;
  /** @type {HTMLElement | null} */ (document.querySelector("#main"))?.focus();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.post) return;
  event.preventDefault();
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  const fields = new URLSearchParams(/** @type {any} */ (new FormData(form, /** @type {SubmitEvent} */ (event).submitter)));
  post(form.dataset.post, fields).catch(() => {
    for (const button of form.querySelectorAll("button")) button.disabled = false;
    form.querySelector("[data-failed]")?.removeAttribute("hidden");
  });
});

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button[data-post]") : null;
  if (button instanceof HTMLElement && button.dataset.post) post(button.dataset.post).catch(() => location.reload());
});

// A name that is cut off is told in full by the pointer.
document.addEventListener("pointerover", (event) => {
  const name = event.target instanceof Element ? event.target.closest(".name, .truncate, .table bdi") : null;
  if (name instanceof HTMLElement && !name.title && name.scrollWidth > name.clientWidth) name.title = name.textContent ?? "";
});
