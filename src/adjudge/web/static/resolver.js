// The unfreezing ceremony: applies the steps of the API forwards and backwards by key. The page knows no rules of scoring.

export async function start() {
  const list = document.querySelector("[data-resolver]");
  const response = await fetch(list.dataset.resolver);
  if (response.ok) new Ceremony(list, await response.json()).run();
}

class Ceremony {
  constructor(list, found) {
    this.list = list;
    this.found = found;
    this.texts = JSON.parse(list.dataset.texts);
    this.rows = found.rows;
    this.columns = new Map(found.problems.map((problem, index) => [problem.id, index]));
    this.citations = new Map(found.awards.map((award) => [award.id, award.citation]));
    this.next = 0;
    this.current = null;
    this.award = null;
  }

  run() {
    document.addEventListener("keydown", (event) => {
      const forwards = [" ", "ArrowRight", "PageDown"].includes(event.key);
      if (!forwards && !["ArrowLeft", "PageUp"].includes(event.key)) return;
      event.preventDefault();
      if (forwards) this.forwards(); else this.backwards();
      this.render();
    });
    this.render();
  }

  forwards() {
    const step = this.found.steps[this.next];
    if (!step) return;
    this.next += 1;
    this.award = null;
    this.current = step.participant_id;
    if (step.kind === "reveal") this.reveal(step, step.after, step.keys_after);
    else if (step.kind === "move") this.move(step.from_position, step.to_position);
    else this.award = step;
  }

  backwards() {
    if (this.next === 0) return;
    this.next -= 1;
    const step = this.found.steps[this.next];
    this.current = step.participant_id;
    if (step.kind === "reveal") this.reveal(step, step.before, step.keys_before);
    else if (step.kind === "move") this.move(step.to_position, step.from_position);
    const before = this.found.steps[this.next - 1];
    this.award = before && before.kind === "award" ? before : null;
  }

  reveal(step, cell, keys) {
    const row = this.rows.find((item) => item.participant_id === step.participant_id);
    row.cells[this.columns.get(step.problem_id)] = cell;
    row.keys = keys;
  }

  move(from, to) {
    this.rows.splice(to, 0, ...this.rows.splice(from, 1));
  }

  render() {
    let count = 0;
    let rank = 0;
    let previous = "";
    this.list.replaceChildren(...this.rows.map((row) => {
      if (row.is_ranked) {
        count += 1;
        if (String(row.keys) !== previous) { rank = count; previous = String(row.keys); }
      }
      return this.element(row, row.is_ranked ? rank : "");
    }));
    this.renderAward(); // first: it makes the list smaller
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.list.querySelector(".current")?.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
    document.querySelector("[data-progress]").textContent = `${this.next} / ${this.found.steps.length}`;
  }

  renderAward() {
    const panel = document.querySelector("[data-award]");
    panel.hidden = !this.award;
    if (!this.award) return;
    const row = this.rows.find((item) => item.participant_id === this.award.participant_id);
    panel.replaceChildren();
    if (row.photo) { const photo = add(panel, "img", ""); photo.src = row.photo; photo.alt = row.name; }
    add(panel, "strong", row.name);
    if (row.organization) add(panel, "p", row.organization);
    for (const id of this.award.award_ids) add(panel, "p", this.citations.get(id) ?? id);
  }

  element(row, rank) {
    const line = document.createElement("li");
    line.className = `resolver-row${row.participant_id === this.current ? " current" : ""}`;
    line.dataset.participant = row.participant_id;
    add(line, "span", rank, "rank");
    add(line, "span", row.name, "grow");
    for (const [index, cell] of row.cells.entries()) line.append(this.cell(cell, this.found.problems[index]));
    add(line, "strong", this.found.is_pass_fail ? row.keys[0] : row.keys[0] / 1e6);
    return line;
  }

  cell(cell, problem) {
    const solved = cell.solved_us !== null || (!this.found.is_pass_fail && cell.score_micro > 0);
    const kind = cell.pending ? "pending" : solved ? "solved" : cell.attempts ? "tried" : "none";
    const sign = { pending: "?", solved: "✓", tried: "✗", none: "" }[kind];
    const element = document.createElement("span");
    element.className = `resolver-cell ${kind}`;
    element.textContent = `${problem.label} ${sign}${cell.attempts + cell.pending || ""}`;
    element.title = this.texts[kind] ?? "";
    return element;
  }
}

function add(parent, tag, text, className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}
