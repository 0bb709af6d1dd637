// Script of every page. Pages also work without scripts.

import { formatTimes } from "./times.js";

document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  try { localStorage.setItem("adjudge-theme", root.dataset.theme); } catch { /* not stored: applies to this page only */ }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await copy(document.getElementById(button.dataset.copy));
  const before = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = before; }, 1500);
});

// The clipboard API is not available over plain HTTP; copy the selection there.
async function copy(element) {
  if (navigator.clipboard) { await navigator.clipboard.writeText(element.textContent); return; }
  getSelection().selectAllChildren(element);
  document.execCommand("copy");
  getSelection().removeAllRanges();
}

// Prevents sending a form twice while the response is pending.
const RESPONSE_MS = 5000;
document.addEventListener("submit", (event) => {
  const form = event.target;
  const question = form.dataset.confirm;
  if ("sent" in form.dataset || (question && !confirm(question))) { event.preventDefault(); return; }
  if (form.method !== "post") return;
  form.dataset.sent = "";
  setTimeout(() => { delete form.dataset.sent; }, RESPONSE_MS);
});
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

document.addEventListener("change", (event) => {
  const name = event.target.dataset.checkAll;
  if (!name) return;
  for (const box of event.target.form.querySelectorAll(`[name="${name}"]`)) box.checked = event.target.checked;
});

formatTimes(document);

// On a phone the navigation bar may be wider than the screen. Scroll the bar to the current entry; scrollIntoView would
// also move the starting point of Tab past the skip link.
const current = document.querySelector(".top [aria-current]");
if (current) {
  const row = current.closest("nav");
  const middle = current.getBoundingClientRect().left + current.offsetWidth / 2;
  row.scrollLeft += middle - row.getBoundingClientRect().left - row.clientWidth / 2;
}

// Remove the flash message from the URL, so that it is not shown again on reload or to others.
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}

for (const [selector, script] of [["[data-live]", "live"], ["[data-scoreboard]", "scoreboard"], ["[data-resolver]", "resolver"], ["[data-countdown], .contest-header", "countdown"], ["[data-editor]", "bundle/editor"], ["[data-highlight]", "bundle/source_view"], ["[data-draft]", "draft"], ["[data-files]", "files"], ["[data-time-zone]", "contest_form"], ["[data-notify]", "notify"], ["[data-send-once], [data-may-send-once]", "send_once"]]) {
  if (document.querySelector(selector)) import(`./${script}.js`).then((loaded) => loaded.start(), () => { /* the page works without it */ });
}
