// Grammars and highlight classes, shared by the editor and the read-only source view.

import { tags } from "@lezer/highlight";

// Language ID pattern → grammar.
const GRAMMARS = [
  [/^(c$|c[\d+x]|cpp|clang|objc)/, "cpp"],
  [/^(java$|java\d|kotlin|csharp|scala)/, "java"],
  [/^(javascript|js|node|typescript)/, "javascript"],
  [/^(py|pypy)/, "python"],
  [/^rust/, "rust"],
];

export function grammarFor(language) {
  return GRAMMARS.find(([pattern]) => pattern.test(language))?.[1];
}

// Colours are classes of app.css, because the content security policy forbids inline styles.
export const HIGHLIGHT_CLASSES = [
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: [tags.typeName, tags.className, tags.namespace], class: "tok-type" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], class: "tok-name" },
  { tag: [tags.meta, tags.processingInstruction], class: "tok-meta" },
];
