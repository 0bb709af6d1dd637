// What every page gets when scripts run. Pages work without any of it.

import { showTimes } from "./times.js";

document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  try { localStorage.setItem("adjudge-theme", root.dataset.theme); } catch { /* lasts for this page */ }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  const before = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = before; }, 1500);
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !confirm(question)) event.preventDefault();
});

showTimes(document);

for (const [selector, script] of [["[data-live]", "live"], ["[data-editor]", "bundle/editor"], ["[data-draft]", "draft"]]) {
  if (document.querySelector(selector)) import(`./${script}.js`).then((loaded) => loaded.start());
}
