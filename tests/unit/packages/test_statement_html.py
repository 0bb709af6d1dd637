"""Statements as HTML: what is shown, and what must never get through."""

from __future__ import annotations

import re

import pytest

from adjudge.packages.statement_html import render_statement

NAMES = {"tree.png"}


def located(name: str) -> str | None:
    return f"/files/{name}" if name in NAMES else None


def shown(text: str, kind: str = "md") -> str:
    return render_statement(text, kind, located).strip()


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Let $a<b$.", '<p>Let <span class="math inline">a&lt;b</span>.</p>'),
        ("$$\\sum_{i} x_i$$", '<p><span class="math display">\\sum_{i} x_i</span></p>'),
        ("$a_1 * b_2 * c$", '<p><span class="math inline">a_1 * b_2 * c</span></p>'),
        ("It costs $5 and $6.", "<p>It costs $5 and $6.</p>"),
        ("A \\$ sign and `$x$`", "<p>A $ sign and <code>$x$</code></p>"),
        ("~~no~~ **yes**", "<p><s>no</s> <strong>yes</strong></p>"),
        ("![a tree](tree.png)", '<p><img src="/files/tree.png" alt="a tree"></p>'),
    ],
)
def test_markdown_with_formulas(text: str, html: str) -> None:
    assert shown(text) == html


def test_tables_and_code() -> None:
    html = shown("| a | b |\n|--:|---|\n| 1 | 2 |\n\n```cpp\nint x;\n```")
    assert "<table>" in html
    assert '<pre><code class="language-cpp">int x;' in html


PROBES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href=" &#106;avascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    "![x](http://elsewhere.example/pixel.png)",
    '<iframe src="//elsewhere.example"></iframe>',
    '<form action="//elsewhere.example"><input name=q></form>',
    '<style>@import "//elsewhere.example";</style>',
    '<p style="background:url(//elsewhere.example)">x</p>',
    '<math><mtext></p><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    '<div id="login" class="page-header" onclick="x()">x</div>',
    "$</span><script>alert(1)</script>$",
    "$$<img src=x onerror=alert(1)>$$",
    "<span class='math inline' onmouseover=alert(1)>x</span>",
    "\\textbf{<script>alert(1)</script>} \\includegraphics{javascript:alert(1)}",
    '\\includegraphics{x" onerror="alert(1)}',
    "\\begin{verbatim}</pre><script>alert(1)</script>\\end{verbatim}",
    "\\url{javascript:alert(1)}",
]
_LIVE = re.compile(
    r"<(?:script|style|iframe|form|input|svg|math|object|embed|link|meta|base|noscript)\b"
    r"|<[^>]*\s(?:on\w+|style|id|formaction|srcdoc)\s*="
    r"|<[^>]*\s(?:href|src)\s*=\s*[\"']?\s*(?:javascript|data|vbscript):"
    r"|<img[^>]*\ssrc=\"(?!/files/)",
    re.IGNORECASE,
)


@pytest.mark.parametrize("kind", ["md", "html", "tex", "txt"])
@pytest.mark.parametrize("probe", PROBES)
def test_active_content_is_removed(probe: str, kind: str) -> None:
    assert not _LIVE.search(shown(f"before {probe} after", kind))


def test_links_have_no_referrer_or_opener() -> None:
    html = shown("[x](https://elsewhere.example/)")
    assert html == '<p><a href="https://elsewhere.example/" rel="noopener noreferrer nofollow">x</a></p>'


def test_simple_tex() -> None:
    text = r"""
        \problemname{Sum}
        Print $a+b$ for \emph{two} numbers --- 50\% of the time. % a comment

        \section*{Input}
        \begin{itemize}
        \item one
        \item \texttt{two}
        \end{itemize}
        \begin{verbatim}
1 < 2 $x$
\end{verbatim}
        \unknowncommand{kept}
        """
    html = shown(text, "tex")
    assert "<h1>Sum</h1>" in html
    assert '<span class="math inline">a+b</span> for <em>two</em> numbers — 50% of the time.' in html
    assert "a comment" not in html
    assert "<h2>Input</h2>" in html
    assert html.count("<li>") == 2
    assert "<pre>1 &lt; 2 $x$</pre>" in html
    assert "kept" in html


def test_polygon_tex_omits_header() -> None:
    html = shown(
        "\\begin{problem}{Title}{stdin}{stdout}{1 s}{256 MB}\nDo it.\n\\InputFile\nA number.\n"
        "\\Example\n\\begin{example}\\exmpfile{a.01}{a.01.a}%\n\\end{example}\n\\end{problem}",
        "tex",
    )
    assert html == "<p>Do it.</p>\n<h2>Input</h2>\n<p>A number.</p>"


@pytest.mark.parametrize("mark", ["\\[", "$$ ", "\\begin{verbatim}", "{", "\\textbf{", "$"])
def test_unclosed_marks_take_linear_time(mark: str) -> None:
    assert shown(mark * 3_000, "tex") is not None
