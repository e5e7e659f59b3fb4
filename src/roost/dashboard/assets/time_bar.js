// @ts-check
// The slider of time: the text beside it follows, and the page is shown when it is let go.

const MOMENT = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC",
});

for (const form of document.querySelectorAll("form[data-time-bar]")) {
  const slider = form.querySelector("input[type=range]");
  const output = form.querySelector("output");
  if (!(form instanceof HTMLFormElement) || !(slider instanceof HTMLInputElement) || !output) continue;
  slider.addEventListener("input", () => {
    const text = `${MOMENT.format(1e3 * Number(slider.value))} UTC`;
    output.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  });
  // Arrow keys change the value with each press: the page is shown by Enter or the button.
  slider.addEventListener("pointerup", () => form.requestSubmit());
}
