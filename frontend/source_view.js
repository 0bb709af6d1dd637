// Syntax highlighting of read-only sources. It runs in the browser, so that a source that is slow to parse costs no server
// time. The lines, line numbers and anchors that the server rendered are kept.

import { highlightCode, tagHighlighter } from "@lezer/highlight";
import { grammarFor, HIGHLIGHT_CLASSES } from "./grammars.js";

// Only the parsers: a page without an editor does not load the editor.
const PARSERS = {
  cpp: () => import("@lezer/cpp"),
  java: () => import("@lezer/java"),
  javascript: () => import("@lezer/javascript"),
  python: () => import("@lezer/python"),
  rust: () => import("@lezer/rust"),
};

const MAX_LENGTH = 300_000;
const HIGHLIGHTER = tagHighlighter(HIGHLIGHT_CLASSES);

export function start() {
  for (const source of document.querySelectorAll("[data-highlight]")) highlight(source);
}

async function highlight(source) {
  const text = source.textContent;
  const grammar = await PARSERS[grammarFor(source.dataset.highlight)]?.().catch(() => null);  // not reachable: no colours
  if (!grammar || text.length > MAX_LENGTH) return;
  const lines = [[]];
  const put = (piece, classes) => lines.at(-1).push(classes ? highlighted(piece, classes) : piece);
  highlightCode(text, grammar.parser.parse(text), HIGHLIGHTER, put, () => lines.push([]));
  // Browsers count a lone carriage return as a line end, the server does not. Leave such a source without colours.
  if (lines.length !== source.children.length + 1) return;
  for (const [index, line] of [...source.children].entries()) line.replaceChildren(...lines[index], "\n");
}

function highlighted(text, classes) {
  const span = document.createElement("span");
  span.className = classes;
  span.textContent = text;
  return span;
}
