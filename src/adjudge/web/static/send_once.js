// Sends a form when its page is seen, and hides it: what the page shows is then marked as read. Live regions may add or
// change such a form later.

const sent = new Set();

export function start() {
  sendAll();
  document.addEventListener("visibilitychange", sendAll);
  document.addEventListener("adjudge:refreshed", sendAll);
}

function sendAll() {
  if (document.visibilityState !== "visible") return;
  for (const form of document.querySelectorAll("form[data-send-once]")) send(form);
}

async function send(form) {
  const body = new URLSearchParams(new FormData(form)).toString();
  const key = `${form.action} ${body}`;
  if (sent.has(key)) { form.hidden = true; return; }
  sent.add(key);
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(body), redirect: "manual" });
    if (answer.type !== "opaqueredirect") throw new Error(answer.statusText);
    form.hidden = true;
    document.dispatchEvent(new Event("adjudge:refresh"));
  } catch { sent.delete(key); /* the next refresh tries again; the button works, too */ }
}
