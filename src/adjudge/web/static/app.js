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
  await copy(document.getElementById(button.dataset.copy));
  const before = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = before; }, 1500);
});

// Browsers keep the clipboard from pages that came over plain HTTP; what is selected can be copied there too.
async function copy(element) {
  if (navigator.clipboard) { await navigator.clipboard.writeText(element.textContent); return; }
  getSelection().selectAllChildren(element);
  document.execCommand("copy");
  getSelection().removeAllRanges();
}

// A form is sent once, however often its button is pressed while the answer is on its way.
const ANSWER_MS = 5000;
document.addEventListener("submit", (event) => {
  const form = event.target;
  const question = form.dataset.confirm;
  if ("sent" in form.dataset || (question && !confirm(question))) { event.preventDefault(); return; }
  if (form.method !== "post") return;
  form.dataset.sent = "";
  setTimeout(() => { delete form.dataset.sent; }, ANSWER_MS);
});
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

document.addEventListener("change", (event) => {
  const name = event.target.dataset.checkAll;
  if (!name) return;
  for (const box of event.target.form.querySelectorAll(`[name="${name}"]`)) box.checked = event.target.checked;
});

showTimes(document);

// On a phone the bar is one row that can be wider than the screen. The row is scrolled by itself: scrollIntoView would
// also move the place from which Tab goes on, past the link that skips the bar.
const current = document.querySelector(".top [aria-current]");
if (current) {
  const row = current.closest("nav");
  const middle = current.getBoundingClientRect().left + current.offsetWidth / 2;
  row.scrollLeft += middle - row.getBoundingClientRect().left - row.clientWidth / 2;
}

// What was done is said once: not again by reloading, not to whoever gets the address.
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}

for (const [selector, script] of [["[data-live]", "live"], ["[data-editor]", "bundle/editor"], ["[data-source]", "bundle/source"], ["[data-draft]", "draft"]]) {
  if (document.querySelector(selector)) import(`./${script}.js`).then((loaded) => loaded.start(), () => { /* the page works without */ });
}
