// What languages have in common, for the editor and for programs that are only read.

import { tags } from "@lezer/highlight";

// Which grammar a language is read with.
const KINDS = [
  [/^(c$|c[\d+x]|cpp|clang|objc)/, "cpp"],
  [/^(java$|java\d|kotlin|csharp|scala)/, "java"],
  [/^(javascript|js|node|typescript)/, "javascript"],
  [/^(py|pypy)/, "python"],
  [/^rust/, "rust"],
];

export function kindOf(language) {
  return KINDS.find(([pattern]) => pattern.test(language))?.[1];
}

// Colours are classes of the page's own sheet: a policy that forbids inline styles stays in force.
export const MARKS = [
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: [tags.typeName, tags.className, tags.namespace], class: "tok-type" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], class: "tok-name" },
  { tag: [tags.meta, tags.processingInstruction], class: "tok-meta" },
];
