// Sends a form when its page is seen, and hides it: what the page shows is then marked as read.

export function start() {
  for (const form of document.querySelectorAll("form[data-send-once]")) whenSeen(() => send(form));
}

function whenSeen(action) {
  if (document.visibilityState === "visible") { action(); return; }
  document.addEventListener("visibilitychange", () => whenSeen(action), { once: true });
}

async function send(form) {
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
  if (answer.type === "opaqueredirect") form.hidden = true;
}
