// Browser notifications of a contest: new verdicts, answers and messages, as the header lists them. Only the server
// decides what is new and what it says. The permission is asked for when the button is pressed.

const ENABLED = "adjudge-notify";
const KNOWN = "adjudge-notified";
const KNOWN_MOST = 200;
const LOOK_MS = 10_000;

export function start() {
  const box = document.querySelector("[data-notify]");
  if (!box || !("Notification" in window)) return;
  const button = box.querySelector("button");
  button.addEventListener("click", () => toggle(box, button));
  document.addEventListener("adjudge:refreshed", () => notify(box));
  show(box, button);
  box.hidden = false;
  notify(box);
  setInterval(() => { if (isEnabled()) document.dispatchEvent(new Event("adjudge:refresh")); }, LOOK_MS);
}

async function toggle(box, button) {
  if (isEnabled()) {
    write(ENABLED, "off");
  } else if (await Notification.requestPermission() === "granted") {
    remember(notices(box).map((notice) => notice.key));  // what the page already shows is not new
    write(ENABLED, "on");
  }
  show(box, button);
}

function show(box, button) {
  button.textContent = isEnabled() ? box.dataset.disable : box.dataset.enable;
  box.querySelector("[data-denied]").hidden = Notification.permission !== "denied";
}

function isEnabled() {
  return Notification.permission === "granted" && read(ENABLED) === "on";
}

function notices(box) {
  return [...document.querySelectorAll("[data-notice]")].map((item) => (
    { key: `${box.dataset.notify}/${item.dataset.notice}`, text: item.textContent, href: item.dataset.href }
  )).reverse();
}

// Each notice once, whichever tab is the first; the tag keeps two tabs from showing it at the same time.
function notify(box) {
  if (!isEnabled()) return;
  const known = new Set(knownKeys());
  const fresh = notices(box).filter((notice) => !known.has(notice.key));
  remember(fresh.map((notice) => notice.key));
  for (const { key, text, href } of fresh) {
    const shown = new Notification(box.dataset.title, { body: text, tag: key });
    shown.onclick = () => { focus(); location.assign(href); };
  }
}

function knownKeys() {
  try { return JSON.parse(read(KNOWN) ?? "[]"); } catch { return []; }
}

function remember(keys) {
  if (keys.length) write(KNOWN, JSON.stringify([...knownKeys(), ...keys].slice(-KNOWN_MOST)));
}

function read(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function write(name, value) {
  try { localStorage.setItem(name, value); } catch { /* not stored: notifications stay off */ }
}
