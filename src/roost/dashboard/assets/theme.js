// @ts-check
// The chosen theme, before the first paint: a classic script in the head. Without a choice the system's theme holds.
// Any button with `data-theme-choice` goes to the next one: system, light, dark.
"use strict";
(() => {
  const themes = ["system", "light", "dark"];
  const root = document.documentElement;

  /** @returns {string} the kept choice; "system" where nothing may be kept */
  function kept() {
    try {
      return localStorage.getItem("roost-theme") ?? "system";
    } catch {
      return "system";
    }
  }

  /** @param {string} theme */
  function show(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
    document.dispatchEvent(new CustomEvent("roost:theme", { detail: theme }));
  }

  show(kept());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(kept()));
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-theme-choice]") : null;
    if (!button) return;
    const theme = themes[(themes.indexOf(kept()) + 1) % themes.length];
    try {
      localStorage.setItem("roost-theme", theme);
    } catch {
      // Nothing may be kept: the choice holds for this page.
    }
    show(theme);
    button.setAttribute("aria-label", `Theme: ${theme}`);
  });
})();
