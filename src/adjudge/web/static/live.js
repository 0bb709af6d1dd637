// Live regions: an event says that something changed, then the region is fetched again. Only the server renders.
//
// The browser resumes a lost connection with Last-Event-ID. If event streams do not work, the region is polled every two
// seconds, or at the interval in data-poll-ms. A region with data-poll (a log) is polled in addition to its events. A
// region with data-refreshable is also fetched again when a script asks for it with the event adjudge:refresh.

import { formatTimes } from "./times.js";

const POLL_MS = 2000;
const FAILURES_BEFORE_POLLING = 3;

export function start() {
  for (const region of document.querySelectorAll("[data-live]")) subscribe(region);
}

function subscribe(region) {
  let busy = false;
  let pending = false;
  let polling = null;
  let failures = 0;
  let source = null;

  async function refresh() {
    if (busy) { pending = true; return; }
    busy = true;
    try {
      const response = await fetch(region.dataset.live, { headers: { Accept: "text/html" } });
      if (response.ok) replace(region, await response.text());
      if (region.querySelector("[data-live-done]")) stop();
    } catch { /* the next event or poll retries */ } finally {
      busy = false;
      if (pending) { pending = false; refresh(); }
    }
  }

  function stop() {
    source?.close();
    clearTimeout(polling);
    region.dataset.state = "done";
  }

  // Reads the interval before each poll, because the region may change it.
  function schedulePoll() {
    const delayMs = Number(region.querySelector("[data-poll-ms]")?.dataset.pollMs) || POLL_MS;
    polling = setTimeout(async () => {
      await refresh();
      if (region.dataset.state !== "done") schedulePoll();
    }, delayMs);
  }

  function poll() {
    source?.close();
    region.dataset.state = "polling";
    if (polling === null) schedulePoll();
  }

  function connect() {
    if (!region.dataset.events || !("EventSource" in window)) { poll(); return; }
    source = new EventSource(region.dataset.events);
    source.onopen = () => { failures = 0; region.dataset.state = "live"; refresh(); };
    source.onerror = () => {
      region.dataset.state = "reconnecting";
      failures += 1;
      if (failures >= FAILURES_BEFORE_POLLING || source.readyState === EventSource.CLOSED) poll();
    };
    for (const name of (region.dataset.eventNames ?? "message").split(" ")) source.addEventListener(name, refresh);
    source.addEventListener("end", poll);  // poll in case the region is not final yet
  }

  if (region.querySelector("[data-live-done]")) { region.dataset.state = "done"; return; }
  connect();
  if ("refreshable" in region.dataset) {
    document.addEventListener("adjudge:refresh", () => { if (region.dataset.state !== "done") refresh(); });
  }
  if ("poll" in region.dataset && polling === null) schedulePoll();
}

// Replaces changed nodes only, so that focus, selection and open details are kept.
function replace(region, html) {
  const logsAtEnd = [...region.querySelectorAll("[data-follow]")].filter(isAtEnd);
  const page = new DOMParser().parseFromString(html, "text/html");
  morph(region, (region.id && page.getElementById(region.id)) || page.body);
  formatTimes(region);
  showTitle(region);
  for (const log of logsAtEnd) log.scrollTop = log.scrollHeight;
  document.dispatchEvent(new Event("adjudge:refreshed"));
}

// A log that is scrolled to its end stays at its end.
function isAtEnd(log) {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 4;
}

// Shows the current state in the title of a background tab.
function showTitle(region) {
  const named = region.querySelector("[data-title]");
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
