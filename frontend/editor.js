// An editor over the plain text area, which stays in the page: it is what the form sends and what works without this.

import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// A grammar is fetched when its language is chosen.
const GRAMMARS = [
  [/^(c$|c[\d+x]|cpp|clang|objc)/, () => import("@codemirror/lang-cpp").then((module) => module.cpp())],
  [/^(java$|java\d|kotlin|csharp|scala)/, () => import("@codemirror/lang-java").then((module) => module.java())],
  [/^(javascript|js|node|typescript)/, () => import("@codemirror/lang-javascript").then((module) => module.javascript())],
  [/^(py|pypy)/, () => import("@codemirror/lang-python").then((module) => module.python())],
  [/^rust/, () => import("@codemirror/lang-rust").then((module) => module.rust())],
];

// Colours are classes of the page's own sheet: a policy that forbids inline styles stays in force.
const MARKS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: [tags.typeName, tags.className, tags.namespace], class: "tok-type" },
  { tag: [tags.function(tags.variableName), tags.definition(tags.variableName)], class: "tok-name" },
  { tag: [tags.meta, tags.processingInstruction], class: "tok-meta" },
]);

export function start() {
  for (const area of document.querySelectorAll("textarea[data-editor]")) enhance(area);
}

async function grammarOf(language) {
  return (await GRAMMARS.find(([pattern]) => pattern.test(language))?.[1]()) ?? [];
}

function enhance(area) {
  const select = area.form?.querySelector("select[name=language]");
  const grammar = new Compartment();
  const write = EditorView.updateListener.of((update) => {
    if (!update.docChanged) return;
    area.value = update.state.doc.toString();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const view = new EditorView({
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
        // Long lines wrap and the editor grows with its text: nothing in it scrolls that the keyboard could not reach.
        EditorView.lineWrapping, autocompletion(), highlightActiveLine(), indentUnit.of("    "), syntaxHighlighting(MARKS),
        // Tab indents; Escape then Tab leaves the editor, as screen-reader and keyboard users expect.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": area.getAttribute("aria-label") ?? area.labels?.[0]?.textContent ?? "" }),
        EditorView.cspNonce.of(document.querySelector("meta[name=style-nonce]")?.content ?? ""),
        grammar.of([]),
        write,
      ],
    }),
  });
  area.hidden = true;
  area.after(view.dom);
  area.addEventListener("adjudge:set", (event) => {
    if (event.detail !== view.state.doc.toString()) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: event.detail } });
    }
  });
  const colour = async () => view.dispatch({ effects: grammar.reconfigure(await grammarOf(select?.value ?? "")) });
  select?.addEventListener("change", colour);
  colour();
}
