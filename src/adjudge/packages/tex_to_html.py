r"""Converts the TeX of statements to plain HTML: sections, lists, emphasis, verbatim, images, formulas.

Not a TeX implementation: macros are not expanded, and unknown commands are removed while their text stays. Packages
that need more should contain a PDF or Markdown. Formulas are kept in spans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<open>\\begin\{(?:verbatim|lstlisting|equation\*?|align\*?|gather\*?|displaymath)\}|\$\$?|\\\[|\\\()
    | (?P<comment>%[^\n]*\n?)
    | \\(?P<which>begin|end)\{(?P<block>[A-Za-z]{1,30}\*?)\}(?:\[[^\]\n]{0,100}\])?
    | \\(?P<name>[A-Za-z]{1,40})\*?(?:\[[^\]\n]{0,100}\])?
    | \\(?P<sign>.)
    | (?P<brace>[{}])
    | (?P<break>\n[ \t]*\n\s*)
    | (?P<text>[^\\${}%\n]+|[\n\\])
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSING: Final = {"$": "$", "$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_VERBATIM: Final = ("verbatim", "lstlisting")
_WRAP: Final = {
    "textbf": "strong", "bf": "strong", "textit": "em", "emph": "em", "it": "em", "texttt": "code", "t": "code",
    "tt": "code", "underline": "u", "sout": "s", "url": "code",
}  # fmt: skip
_HEADING: Final = {"section": "h2", "subsection": "h3", "subsubsection": "h4", "paragraph": "h4", "problemname": "h1"}
_TITLES: Final = {
    "InputFile": "Input", "OutputFile": "Output", "Note": "Note", "Scoring": "Scoring", "Interaction": "Interaction",
}  # fmt: skip
_LISTS: Final = {"itemize": "ul", "enumerate": "ol"}
_SIGNS: Final = {"\\": "<br>", ",": " ", ";": " ", " ": " ", "-": "", "/": ""}
_WORDS: Final = {
    "ldots": "…", "dots": "…", "le": "≤", "ge": "≥", "quad": " ", "textbackslash": "\\", "LaTeX": "LaTeX",
    "TeX": "TeX",
}  # fmt: skip
_SILENT: Final = {
    "Example",
    "Examples",
    "exmpfile",
    "exmp",
    "illustration",
    "label",
    "problemtitle",
    "vspace",
    "hspace",
}
"""Commands whose arguments are not text: the page itself shows the samples."""
_QUOTES: Final = (("``", "“"), ("''", "”"), ("---", "—"), ("--", "\u2013"), ("~", "\u00a0"))


@dataclass
class _Page:
    """HTML under construction: open elements and the current paragraph."""

    parts: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    braces: list[str] = field(default_factory=list)
    """What closes each open brace."""
    pending: str = ""
    """What the next brace opens."""
    skipping: int = 0
    """How many of the next arguments are skipped."""

    def end_paragraph(self) -> None:
        text = "".join(self.line).strip()
        if text:
            self.parts.append(f"<p>{text}</p>")
        self.line.clear()

    def block(self, html: str) -> None:
        self.end_paragraph()
        self.parts.append(html)


def tex_to_html(text: str) -> str:
    """Convert; the result must still be sanitized."""
    page = _Page()
    depth = at = 0
    absent: set[str] = set()
    while at < len(text) and (match := _TOKEN.match(text, at)) is not None:
        at = match.end()
        if page.skipping or depth:
            depth = _skip(page, match, depth)
            if depth >= 0:
                continue
            depth = 0
        if match["open"] is not None:
            at = _quoted(page, match["open"], text, at, absent)
        else:
            _write(page, match)
    page.end_paragraph()
    return "\n".join(page.parts)


def _quoted(page: _Page, mark: str, text: str, at: int, absent: set[str]) -> int:
    """Copy the text between two marks; returns the position after it. An unclosed mark is text.

    A closing mark that is absent once is absent for good, so a long row of opening marks takes linear time.
    """
    name = mark[7:-1] if mark.startswith("\\begin") else ""
    closing = _CLOSING.get(mark) or f"\\end{{{name}}}"
    end = -1 if closing in absent else text.find(closing, at)
    while end > 0 and closing == "$" and text[end - 1] == "\\":
        end = text.find(closing, end + 1)
    if end < 0:
        absent.add(closing)
        page.line.append(escape(mark))
        return at
    inner = text[at:end]
    if name in _VERBATIM:
        page.block(f"<pre>{escape(inner.strip(chr(10)))}</pre>")
    else:
        way = "inline" if mark in ("$", "\\(") else "display"
        page.line.append(f'<span class="math {way}">{escape(inner.strip())}</span>')
    return end + len(closing)


def _skip(page: _Page, match: re.Match[str], depth: int) -> int:
    """Skip arguments; returns the depth inside one, or -1 if no further argument follows."""
    if match["brace"] == "{":
        return depth + 1
    if match["brace"] == "}" and depth:
        if depth == 1:
            page.skipping -= 1
        return depth - 1
    if depth:
        return depth
    page.skipping = 0
    return -1


def _write(page: _Page, match: re.Match[str]) -> None:
    if match["break"] is not None:
        page.end_paragraph()
    elif match["which"] is not None:
        _environment(page, match["which"], match["block"])
    elif match["name"] is not None:
        _command(page, match["name"])
    elif match["sign"] is not None:
        page.line.append(_SIGNS.get(match["sign"], escape(match["sign"])))
    elif match["brace"] is not None:
        _brace(page, match["brace"])
    elif match["text"] is not None:
        page.line.append(_plain(match["text"]))


def _plain(text: str) -> str:
    for written, meant in _QUOTES:
        text = text.replace(written, meant)
    return escape(text)


def _environment(page: _Page, which: str, name: str) -> None:
    tag = _LISTS.get(name)
    if tag is not None:
        if which == "end":
            page.end_paragraph()
        page.block(f"<{'/' if which == 'end' else ''}{tag}>")
    elif which == "begin" and name == "problem":
        page.skipping = 5  # Polygon: title, files and limits, which the page shows itself
    else:
        page.end_paragraph()


def _command(page: _Page, name: str) -> None:
    if name in _WRAP:
        page.pending = _WRAP[name]
    elif name in _HEADING:
        page.end_paragraph()
        page.pending = _HEADING[name]
    elif name in _TITLES:
        page.block(f"<h2>{_TITLES[name]}</h2>")
    elif name == "item":
        page.block("<li>")
    elif name == "includegraphics":
        page.pending = "img"
    elif name in _SILENT:
        page.skipping = 2
    else:
        page.line.append(_WORDS.get(name, ""))


def _brace(page: _Page, brace: str) -> None:
    if brace == "{":
        tag, page.pending = page.pending, ""
        page.braces.append(tag)
        if tag == "img":
            page.line.append('<img src="')
        elif tag:
            page.line.append(f"<{tag}>")
        return
    tag = page.braces.pop() if page.braces else ""
    if tag == "img":
        page.line.append('">')
    elif tag in _HEADING.values():
        page.parts.append("".join(page.line) + f"</{tag}>")
        page.line.clear()
    elif tag:
        page.line.append(f"</{tag}>")
