// The live scoreboard: rows come from the API, changes from its event stream. An event carries one row; the ranks of the
// others follow from its keys before and after.

const PAGE = 100;
const HIGHLIGHT_MS = 4000;
const RETRY_MS = 2000;
const SCROLL_MS = 50;
const PROJECTOR_PAUSE_MS = 6000;
const SEARCH_MS = 200;
const SUGGESTIONS = 20;

export function start() {
  for (const root of document.querySelectorAll("[data-scoreboard]")) new Scoreboard(root).run();
}

// Whether less than `margin` pixels of the content are below what is shown.
function isNearEnd(area, margin) {
  return area.scrollTop + area.clientHeight >= area.scrollHeight - margin;
}

// Whether keys `a` are listed before keys `b`.
function isBetter(a, b) {
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return a[index] > b[index];
  return false;
}

class Scoreboard {
  constructor(root) {
    this.root = root;
    this.address = root.dataset.scoreboard;
    this.cells = root.dataset.cells;
    this.texts = JSON.parse(root.dataset.texts);
    this.body = root.querySelector("tbody[data-rows]");
    this.own = root.querySelector("tbody[data-own]");
    this.status = root.querySelector("[data-status]");
    this.more = root.querySelector("[data-more]");
    this.rows = [];
    this.total = 0;
    this.source = null;
    this.loading = false;
  }

  run() {
    this.more.addEventListener("click", () => this.loadMore());
    this.root.addEventListener("keydown", (event) => this.moveFocus(event));
    for (const input of document.querySelectorAll("select[data-board-filter]")) {
      input.addEventListener("change", () => input.form.requestSubmit());
    }
    const search = document.querySelector("[data-board-search]");
    if (search) new OrganizationSearch(search, (given) => this.url("/filters", given)).run();
    document.addEventListener("keydown", (event) => {
      const filter = document.querySelector("[data-board-filter]");
      if (event.key !== "/" || !filter || event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      filter.focus();
    });
    const area = this.root.querySelector("[data-scroll]");
    area.addEventListener("scroll", () => { if (isNearEnd(area, area.clientHeight)) this.loadMore(); }, { passive: true });
    this.load();
    if ("projector" in this.root.dataset) this.scroll();
  }

  url(suffix, given = {}) {
    const address = new URL(this.address + suffix, location.href);
    const filters = new URLSearchParams(this.root.dataset.query);
    for (const [name, value] of [...filters, ...Object.entries(given)]) address.searchParams.set(name, value);
    return address;
  }

  async fetchRows(offset, limit) {
    const response = await fetch(this.url("", { offset, limit }));
    if (!response.ok) throw new Error(String(response.status));
    return response.json();
  }

  // Reads all rows that are shown again, then follows the changes since.
  async load() {
    this.source?.close();
    try {
      const found = await this.fetchRows(0, Math.min(1000, Math.max(PAGE, this.rows.length)));
      this.isPassFail = found.is_pass_fail;
      this.problems = found.problems;
      this.total = found.total;
      this.rows = found.rows;
      this.ownRow = found.own_row;
      this.showNotices(found);
      this.render();
      this.follow(found.event_id);
    } catch {
      this.root.dataset.state = "reconnecting";
      setTimeout(() => this.load(), RETRY_MS);
    }
  }

  showNotices({ frozen_min: minutes, is_final: isFinal, phase, replay_sec: replaySec }) {
    const frozen = this.root.querySelector("[data-frozen]");
    frozen.hidden = minutes === null;
    if (minutes !== null) frozen.textContent = this.texts.frozen.replaceAll("{minutes}", minutes);
    this.root.querySelector("[data-replay]").hidden = replaySec === null;
    this.root.querySelector("[data-not-final]").hidden = isFinal || !["ended", "thawed"].includes(phase);
  }

  async loadMore() {
    if (this.loading || this.rows.length >= this.total) return;
    this.loading = true;
    try {
      const found = await this.fetchRows(this.rows.length, PAGE);
      const known = new Set(this.rows.map((row) => row.participant_id));
      for (const row of found.rows) if (!known.has(row.participant_id)) { this.rows.push(row); this.body.append(this.element(row)); }
      this.total = found.total;
      this.showMore();
    } catch { /* the button stays */ } finally { this.loading = false; }
  }

  follow(eventId) {
    this.source = new EventSource(this.url("/events", { after: eventId }));
    this.source.onopen = () => { this.root.dataset.state = "live"; };
    this.source.onerror = () => {
      this.root.dataset.state = "reconnecting";
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.load(), RETRY_MS);
    };
    this.source.addEventListener("row", (event) => this.change(JSON.parse(event.data)));
    this.source.addEventListener("own", (event) => { this.ownRow = JSON.parse(event.data); this.renderOwn(); });
    this.source.addEventListener("reset", () => this.load());
    this.source.addEventListener("reconnect", () => this.load());
  }

  change({ row, position, previous_keys: given }) {
    const at = this.rows.findIndex((item) => item.participant_id === row.participant_id);
    const before = at >= 0 ? this.rows[at].keys : given;
    if (row.is_ranked) {
      // Without keys from before, the row was below all rows that are shown here; the own row may have been below it.
      for (const item of this.rows) this.moveRank(item, row, before, this.body);
      if (this.ownRow && before) this.moveRank(this.ownRow, row, before, this.own);
      if (this.ownRow && !before && isBetter(row.keys, this.ownRow.keys)) { this.load(); return; }
    }
    if (at >= 0) { this.find(row)?.remove(); this.rows.splice(at, 1); }
    if (position <= this.rows.length) {
      const element = this.element(row);
      this.body.insertBefore(element, this.body.children[position] ?? null);
      this.rows.splice(position, 0, row);
      element.classList.add("changed");
      setTimeout(() => element.classList.remove("changed"), HIGHLIGHT_MS);
    }
    if (this.ownRow && this.ownRow.participant_id === row.participant_id && this.ownRow.rank !== null) {
      if (row.rank === null) { this.load(); return; } // only the API gives a virtual participation that ended a rank
      this.ownRow = { ...row };
      this.renderOwn();
    }
    this.showMore();
  }

  // Another row moved from keys `before` to those it has now: the rank of `item` may follow.
  moveRank(item, row, before, body) {
    if (item.rank === null || item.participant_id === row.participant_id) return;
    const moved = isBetter(row.keys, item.keys) - (before !== null && isBetter(before, item.keys));
    if (!moved) return;
    item.rank += moved;
    this.find(item, body).querySelector("[data-rank]").textContent = item.rank;
  }

  find(row, body = this.body) {
    return body.querySelector(`[data-participant="${CSS.escape(row.participant_id)}"]`);
  }

  render() {
    this.body.replaceChildren(...this.rows.map((row) => this.element(row)));
    this.renderOwn();
    this.showMore();
  }

  renderOwn() {
    this.own.replaceChildren(...(this.ownRow ? [this.element(this.ownRow)] : []));
  }

  showMore() {
    this.more.hidden = this.rows.length >= this.total;
    this.status.textContent = this.texts.shown.replace("{shown}", this.rows.length).replace("{total}", this.total);
  }

  element(row) {
    const line = document.createElement("tr");
    line.dataset.participant = row.participant_id;
    if (row.is_disqualified) line.className = "disqualified";
    const rank = add(line, "td", row.rank ?? "", "rank");
    rank.dataset.rank = "";
    const name = add(line, "th", "", "team");
    name.scope = "row";
    add(name, "span", row.name, "team-name");
    if (row.organization) add(name, "small", row.organization);
    if (row.is_disqualified) add(name, "small", this.texts.disqualified);
    else if (row.kind !== "official") add(name, "small", this.texts[row.kind] ?? row.kind);
    add(line, "td", this.isPassFail ? row.solved : row.score, "total");
    if (this.isPassFail) add(line, "td", Math.floor(row.penalty_sec / 60), "penalty");
    row.cells.forEach((cell, index) => line.append(this.cell(row, cell, this.problems[index])));
    return line;
  }

  cell(row, cell, problem) {
    const [kind, sign] = state(cell, this.isPassFail);
    const element = document.createElement("td");
    element.className = `cell ${kind}`;
    if (kind === "none") return element;
    const link = add(element, "a", "");
    link.href = `${this.cells}/${encodeURIComponent(row.participant_id)}/${encodeURIComponent(problem.label)}`;
    add(link, "span", sign, "sign").setAttribute("aria-hidden", "true");
    add(link, "span", `${problem.label}, ${this.texts[kind]}: `, "visually-hidden");
    add(link, "span", this.isPassFail ? `${cell.attempts}${cell.pending ? ` + ${cell.pending}` : ""}` : `${cell.score}`);
    if (cell.time_sec !== null) add(link, "small", String(Math.floor(cell.time_sec / 60)));
    return element;
  }

  // Arrow keys move between the cells, which are links.
  moveFocus(event) {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    const here = event.target.closest("td, th");
    if (!step || !here) return;
    const lines = [...this.body.rows, ...this.own.rows];
    let [line, column] = [lines.indexOf(here.parentElement), here.cellIndex];
    for (;;) {
      line += step[0];
      column += step[1];
      const next = lines[line]?.cells[column];
      if (!next) return;
      const link = next.querySelector("a");
      if (link) { event.preventDefault(); link.focus(); return; }
    }
  }

  // The projector goes through all rows, then starts again; without motion it goes page by page.
  scroll() {
    const area = this.root.querySelector("[data-scroll]");
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let restAt = 0;
    setInterval(() => {
      if (Date.now() < restAt) return;
      const isAtEnd = isNearEnd(area, 2);
      if (isAtEnd && this.rows.length < this.total) { this.loadMore(); return; }
      if (isAtEnd || still || area.scrollTop === 0) restAt = Date.now() + PROJECTOR_PAUSE_MS;
      area.scrollTop = isAtEnd ? 0 : area.scrollTop + (still ? area.clientHeight * 0.9 : 1);
    }, SCROLL_MS);
  }
}

// Suggests organisations whose names contain what is typed; choosing one applies the filter.
class OrganizationSearch {
  constructor(input, url) {
    this.input = input;
    this.url = url;
    this.timer = 0;
  }

  run() {
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      if ([...this.input.list.options].some((item) => item.value === this.input.value)) { this.input.form.requestSubmit(); return; }
      this.timer = setTimeout(() => this.suggest(), SEARCH_MS);
    });
    this.input.addEventListener("search", () => { if (!this.input.value) this.input.form.requestSubmit(); });
  }

  async suggest() {
    const response = await fetch(this.url({ search: this.input.value, limit: SUGGESTIONS })).catch(() => null);
    if (!response?.ok) return;
    const { organizations } = await response.json();
    this.input.list.replaceChildren(...organizations.map((item) => new Option(item.name, item.name)));
  }
}

function state(cell, isPassFail) {
  if (cell.is_first) return ["first", "★"];
  if (cell.is_solved) return ["solved", "✓"];
  if (cell.pending) return ["pending", "?"];
  if (!isPassFail && cell.score > 0) return ["partial", "~"];
  return cell.attempts ? ["tried", "✗"] : ["none", ""];
}

function add(parent, tag, text, className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}
