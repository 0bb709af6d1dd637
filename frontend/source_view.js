// Colours in programs that are only read. The reader's browser does it: a grammar that a stranger's program keeps busy
// keeps nobody else waiting. Lines, their numbers and their addresses are the server's and stay as they are.

import { highlightCode, tagHighlighter } from "@lezer/highlight";
import { kindOf, MARKS } from "./languages.js";

// The grammars alone: a page that only shows a program does without the editor.
const PARSERS = {
  cpp: () => import("@lezer/cpp"),
  java: () => import("@lezer/java"),
  javascript: () => import("@lezer/javascript"),
  python: () => import("@lezer/python"),
  rust: () => import("@lezer/rust"),
};

const LONGEST = 300_000;
const HIGHLIGHTER = tagHighlighter(MARKS);

export function start() {
  for (const shown of document.querySelectorAll("[data-source]")) colour(shown);
}

async function colour(shown) {
  const text = shown.textContent;
  const grammar = await PARSERS[kindOf(shown.dataset.source)]?.().catch(() => null);  // the line is down: one colour
  if (!grammar || text.length > LONGEST) return;
  const lines = [[]];
  const put = (piece, classes) => lines.at(-1).push(classes ? marked(piece, classes) : piece);
  highlightCode(text, grammar.parser.parse(text), HIGHLIGHTER, put, () => lines.push([]));
  // A lone carriage return is a line's end to browsers and none to the server: what would not fit its lines stays.
  if (lines.length !== shown.children.length + 1) return;
  for (const [index, line] of [...shown.children].entries()) line.replaceChildren(...lines[index], "\n");
}

function marked(text, classes) {
  const span = document.createElement("span");
  span.className = classes;
  span.textContent = text;
  return span;
}
