// Code editor on top of the text area. The text area stays in the page: the form sends it, and it works without scripts.

import { autocompletion, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { grammarFor, HIGHLIGHT_CLASSES } from "./grammars.js";

// A grammar is loaded when its language is selected.
const GRAMMARS = {
  cpp: () => import("@codemirror/lang-cpp").then((module) => module.cpp()),
  java: () => import("@codemirror/lang-java").then((module) => module.java()),
  javascript: () => import("@codemirror/lang-javascript").then((module) => module.javascript()),
  python: () => import("@codemirror/lang-python").then((module) => module.python()),
  rust: () => import("@codemirror/lang-rust").then((module) => module.rust()),
};

export function start() {
  for (const area of document.querySelectorAll("textarea[data-editor]")) enhance(area);
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
        // Long lines wrap and the editor grows with its text, so that it has no scroll area the keyboard cannot reach.
        EditorView.lineWrapping, autocompletion(), highlightActiveLine(), indentUnit.of("    "), syntaxHighlighting(HighlightStyle.define(HIGHLIGHT_CLASSES)),
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
  const setGrammar = async () => view.dispatch({ effects: grammar.reconfigure((await GRAMMARS[grammarFor(select?.value ?? "")]?.()) ?? []) });
  select?.addEventListener("change", setGrammar);
  setGrammar();
}
