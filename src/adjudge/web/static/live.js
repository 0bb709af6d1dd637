// Keeps a part of a page in step with the server: events say that something changed, the part itself is fetched anew.
//
// The server stays the only one that renders. A lost connection is resumed by the browser with Last-Event-ID; where
// event streams do not get through at all, the part is fetched every two seconds instead, or as seldom as it says that
// it is worth it (data-live-again, in milliseconds). A part that grows between events (a log) is fetched as often.

import { showTimes } from "./times.js";

const POLL_MS = 2000;
const FAILURES_BEFORE_POLLING = 3;

export function start() {
  for (const part of document.querySelectorAll("[data-live]")) follow(part);
}

function follow(part) {
  let busy = false;
  let again = false;
  let polling = null;
  let failures = 0;
  let source = null;

  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
      if (answer.ok) replace(part, await answer.text());
      if (part.querySelector("[data-live-done]")) stop();
    } catch { /* the next event or poll tries again */ } finally {
      busy = false;
      if (again) { again = false; refresh(); }
    }
  }

  function stop() {
    source?.close();
    clearTimeout(polling);
    part.dataset.state = "done";
  }

  // Each pause is the one that the part asked for last: a timer that repeats itself would keep the first.
  function askLater() {
    const pause = Number(part.querySelector("[data-live-again]")?.dataset.liveAgain) || POLL_MS;
    polling = setTimeout(async () => {
      await refresh();
      if (part.dataset.state !== "done") askLater();
    }, pause);
  }

  function poll() {
    source?.close();
    part.dataset.state = "polling";
    if (polling === null) askLater();
  }

  function connect() {
    if (!part.dataset.events || !("EventSource" in window)) { poll(); return; }
    source = new EventSource(part.dataset.events);
    source.onopen = () => { failures = 0; part.dataset.state = "live"; refresh(); };
    source.onerror = () => {
      part.dataset.state = "reconnecting";
      failures += 1;
      if (failures >= FAILURES_BEFORE_POLLING || source.readyState === EventSource.CLOSED) poll();
    };
    for (const name of (part.dataset.eventNames ?? "message").split(" ")) source.addEventListener(name, refresh);
    source.addEventListener("end", poll);  // no more is told; should it not be over, it is asked for
  }

  if (part.querySelector("[data-live-done]")) { part.dataset.state = "done"; return; }
  connect();
  if ("growing" in part.dataset && polling === null) askLater();
}

// Replaces what changed, child by child, so that focus, selection and open details survive.
function replace(part, html) {
  const followed = [...part.querySelectorAll("[data-follow]")].filter(isAtEnd);
  const page = new DOMParser().parseFromString(html, "text/html");
  morph(part, (part.id && page.getElementById(part.id)) || page.body);
  showTimes(part);
  showTitle(part);
  for (const log of followed) log.scrollTop = log.scrollHeight;
}

// Whoever reads the end of a log goes on reading its end; whoever has scrolled up stays there.
function isAtEnd(log) {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 4;
}

// A tab in the background tells what has happened in it.
function showTitle(part) {
  const named = part.querySelector("[data-title]");
  if (named) document.title = `${named.dataset.title} · Adjudge`;
}

function morph(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  for (let index = 0; index < Math.max(before.length, after.length); index += 1) {
    const [was, is] = [before[index], after[index]];
    if (!is) was.remove();
    else if (!was) old.append(document.importNode(is, true));
    else if (!was.isEqualNode(is)) morphNode(was, is);
  }
}

function morphNode(was, is) {
  if (was.nodeType !== is.nodeType || was.nodeName !== is.nodeName || was.nodeType !== Node.ELEMENT_NODE) {
    was.replaceWith(document.importNode(is, true));
    return;
  }
  for (const { name } of [...was.attributes]) if (!is.hasAttribute(name) && name !== "open") was.removeAttribute(name);
  for (const { name, value } of is.attributes) if (was.getAttribute(name) !== value) was.setAttribute(name, value);
  morph(was, is);
}
