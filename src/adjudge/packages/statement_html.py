r"""Renders statements of all formats as safe HTML.

Markdown is rendered, HTML is used as it is, simple TeX is converted, plain text is escaped; then everything passes one
sanitizer with an allowlist. Formulas are not rendered here: TeX is put into ``<span class="math inline">`` or ``<span
class="math display">`` as text, for the page's renderer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from adjudge.packages.tex_to_html import tex_to_html

AssetUrl = Callable[[str], str | None]
"""The URL of a file that a statement refers to; None if the package has no such file."""

_TAGS: Final = {
    *("a", "abbr", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del", "div", "dl", "dt", "em"),
    *("figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "ol", "p"),
    *("pre", "s", "samp", "small", "span", "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead"),
    *("tr", "u", "ul", "var"),
}
_ATTRIBUTES: Final[Mapping[str, set[str]]] = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title", "width", "height"},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align"},
    "span": {"class"},
    "code": {"class"},
}
_CLASSES: Final = {"span": {"math", "inline", "display"}}
_UNDESCRIBED: Final = re.compile(r"<img(?![^>]*\salt=)")
"""Images without a description get an empty alt, so that screen readers skip them instead of reading their URL."""
_LANGUAGE_CLASS: Final = re.compile(r"language-[A-Za-z0-9+#-]{1,20}")


def render_statement(text: str, kind: str, locate: AssetUrl) -> str:
    """Render a statement; a format that is not text gives an empty result."""
    if kind == "md":
        return sanitize_html(_MARKDOWN.render(text), locate)
    if kind == "html":
        return sanitize_html(text, locate)
    if kind == "tex":
        return sanitize_html(tex_to_html(text), locate)
    return f"<pre>{escape(text)}</pre>" if kind == "txt" else ""


def sanitize_html(html: str, locate: AssetUrl) -> str:
    """Keep allowed elements and attributes only."""

    def attribute(tag: str, name: str, value: str) -> str | None:
        if (tag, name) == ("img", "src"):
            return locate(value)
        if name == "class":
            kept = [word for word in value.split() if word in _CLASSES.get(tag, ()) or _LANGUAGE_CLASS.fullmatch(word)]
            return " ".join(kept) or None
        return value

    cleaned = nh3.clean(
        html,
        tags=_TAGS,
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        attribute_filter=attribute,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
    return _UNDESCRIBED.sub('<img alt=""', cleaned)


# ---- maths in Markdown


def _maths(state: StateInline, silent: bool) -> bool:
    r"""Recognize ``$…$`` and ``$$…$$``.

    A dollar before a space, or with a digit after the closing one, is an amount of money.
    """
    source, at = state.src, state.pos
    if source[at] != "$":
        return False
    mark = "$$" if source.startswith("$$", at) else "$"
    begin = at + len(mark)
    end = _closing(source, begin, mark, state.posMax)
    if end < 0 or not source[begin:end].strip():
        return False
    behind = source[end + len(mark) : end + len(mark) + 1]
    if mark == "$" and (source[begin].isspace() or source[end - 1].isspace() or behind.isdigit()):
        return False
    if not silent:
        token = state.push("maths", "", 0)
        token.content = source[begin:end].strip()
        token.meta = {"display": mark == "$$"}
    state.pos = end + len(mark)
    return True


def _closing(source: str, begin: int, mark: str, limit: int) -> int:
    at = source.find(mark, begin, limit)
    while at > 0 and source[at - 1] == "\\":
        at = source.find(mark, at + 1, limit)
    return at


def _draw_maths(_: RendererHTML, tokens: list[Token], index: int, *__: Any) -> str:
    token = tokens[index]
    return f'<span class="math {"display" if token.meta["display"] else "inline"}">{escape(token.content)}</span>'


def _markdown() -> MarkdownIt:
    """CommonMark with tables and strikethrough. Raw HTML is passed on to the sanitizer."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "maths", _maths)
    parser.add_render_rule("maths", _draw_maths)
    return parser


_MARKDOWN: Final = _markdown()
