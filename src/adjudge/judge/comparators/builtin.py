"""The built-in comparators by name: what each ignores, its options, and the reference it is equivalent to.

``docs/reference/checkers.md`` lists the same names; a test compares the two.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.judge.comparators import numbers, tokens
from adjudge.judge.comparators.comparison import ACCEPTED, Comparison, ComparisonStatus
from adjudge.judge.comparators.dmoj_lines import compare_float_lines, count_lines, raw_lines
from adjudge.judge.comparators.first_difference import first_difference, split_lines
from adjudge.judge.comparators.multiset import compare_letters, compare_multisets, dmoj_lines, non_blank_lines
from adjudge.judge.comparators.normalizers import (
    CollapsedSpaces,
    CollapsedSpacesPerLine,
    DmojWhitespace,
    LastEmptyLine,
    LineEndings,
    Lowercase,
    NormalizerChain,
    RawBytes,
    RightStripped,
    Split,
    TruncatedAtNul,
    UnicodeNfc,
    split_testlib,
)
from adjudge.judge.comparators.options import ComparatorOptions
from adjudge.judge.comparators.stream_compare import (
    CHUNK_BYTES,
    Normalizer,
    Reader,
    StreamDifference,
    compare_streams,
    skip_bom,
)
from adjudge.judge.comparators.tokens import CheckToken, TokenRule, compare_tokens, token_lists

Run = Callable[[Reader, Reader, int], Comparison]
_TESTLIB_BLANKS = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Comparator:
    """A named method of comparing an output with the answer."""

    kind: str
    run: Run
    accepts_identical: bool = True
    """Whether identical bytes always pass and need not be parsed."""
    skips_bom: bool = False

    def compare(self, answer: Reader, output: Reader, chunk_bytes: int = CHUNK_BYTES) -> Comparison:
        """Compare two open files of any size in constant memory."""
        if self.skips_bom:
            skip_bom(answer)
            skip_bom(output)
        return self.run(answer, output, chunk_bytes)

    def compare_bytes(self, answer: bytes, output: bytes) -> Comparison:
        if self.accepts_identical and answer == output:
            return ACCEPTED
        return self.compare(io.BytesIO(answer), io.BytesIO(output))

    def compare_files(self, answer: Path, output: Path) -> Comparison:
        with answer.open("rb", buffering=0) as one, output.open("rb", buffering=0) as two:
            return self.compare(one, two)


def _by_stream(
    normalizer: Callable[[], Normalizer],
    *,
    answer_normalizer: Callable[[], Normalizer] | None = None,
    unit: str = "token",
    split: Split = bytes.split,
    answer_tail: bytes = b"",
    output_tail: bytes = b"",
    extra: ComparisonStatus = ComparisonStatus.WRONG_ANSWER,
    lower: bool = False,
) -> Run:
    """Compare normalized streams for equality; ``lower`` also ignores the case of ASCII letters."""
    forms = [_chain(Lowercase, form) if lower else form for form in (answer_normalizer or normalizer, normalizer)]

    def run(answer: Reader, output: Reader, chunk_bytes: int) -> Comparison:
        kind = compare_streams(
            (answer, forms[0]()),
            (output, forms[1]()),
            answer_tail=answer_tail,
            output_tail=output_tail,
            chunk_bytes=chunk_bytes,
        )
        if kind is None:
            return ACCEPTED
        message = first_difference(
            answer, output, normalizer, kind=kind, unit=unit, split=split, key=bytes.lower if lower else bytes
        )
        return Comparison(extra if kind is StreamDifference.EXTRA else ComparisonStatus.WRONG_ANSWER, message)

    return run


def _by_token(rule: TokenRule, normalizer: Callable[[], Normalizer] = RawBytes) -> Run:
    def run(answer: Reader, output: Reader, chunk_bytes: int) -> Comparison:
        lists = (token_lists(side, rule.split, chunk_bytes, normalizer()) for side in (answer, output))
        return compare_tokens(next(lists), next(lists), rule)

    return run


def _unicode(options: ComparatorOptions) -> tuple[list[Callable[[], Normalizer]], bool]:
    """Common options: normalization form C, and case sensitivity for ASCII letters."""
    fold = options.flag("case_insensitive")
    if options.flag("nfc"):
        return [lambda: UnicodeNfc(fold_case=fold)], False
    return [], fold


def _chain(*stages: Callable[[], Normalizer]) -> Callable[[], Normalizer]:
    if len(stages) == 1:
        return stages[0]
    return lambda: NormalizerChain(*(stage() for stage in stages))


def _icpc(
    kind: str,
    read: Callable[[bytes], float | None],
    stages: Sequence[Callable[[], Normalizer]],
    options: ComparatorOptions,
) -> Comparator:
    """The ICPC default validator; ``read`` parses a number, ``stages`` normalize before words are compared."""
    case = options.flag("case_sensitive")
    spaced = options.flag("space_change_sensitive")
    absolute = options.number("float_absolute_tolerance")
    relative = options.number("float_relative_tolerance")
    if (both := options.number("float_tolerance")) is not None:
        absolute = relative = both
    if absolute is None and relative is None:
        return Comparator(kind, _by_stream(_chain(*stages, RawBytes if spaced else CollapsedSpaces), lower=not case))
    text: CheckToken = tokens.same_text if case else tokens.same_text_any_case
    check = tokens.numbers_close_or(read, numbers.Tolerance(absolute, relative), text)
    split = tokens.split_spaced if spaced else bytes.split
    return Comparator(kind, _by_token(TokenRule(check, split), _chain(*stages) if stages else RawBytes))


def _exact(options: ComparatorOptions) -> Comparator:
    if options.flag("binary"):
        return Comparator("exact", _by_stream(RawBytes, unit="line", split=split_lines))
    stages, lower = _unicode(options)
    form = _chain(lambda: LineEndings(lone_cr=True), *stages)
    return Comparator("exact", _by_stream(form, unit="line", split=split_lines, lower=lower), skips_bom=True)


def _line(options: ComparatorOptions) -> Comparator:
    policy = options.choice("whitespace", ("trailing", "collapse", "strict"))
    normal, lower = _unicode(options)
    stages: list[Callable[[], Normalizer]] = [lambda: LineEndings(lone_cr=True, final_lf=True), *normal]
    if policy == "trailing":
        stages.append(lambda: RightStripped(final_lf=True))
    elif policy == "collapse":
        stages.append(CollapsedSpacesPerLine)
    run = _by_stream(_chain(*stages), unit="line", split=split_lines, answer_tail=b"\n", output_tail=b"\n", lower=lower)
    return Comparator("line", run, skips_bom=True)


def _token(options: ComparatorOptions) -> Comparator:
    stages, lower = _unicode(options)
    return Comparator("token", _by_stream(_chain(*stages, CollapsedSpaces), lower=lower), skips_bom=True)


def _float(options: ComparatorOptions) -> Comparator:
    absolute, relative = options.number("absolute", "abs"), options.number("relative", "rel")
    if absolute is None and relative is None:
        absolute = relative = options.number("epsilon", "float_tolerance") or 1e-6
    stages, lower = _unicode(options)
    text: CheckToken = tokens.same_text_any_case if lower else tokens.same_text
    check = tokens.numbers_close_or(numbers.spec_float, numbers.Tolerance(absolute, relative), text)
    return Comparator("float", _by_token(TokenRule(check), _chain(*(stages or [RawBytes]))), skips_bom=True)


def _unordered(
    kind: str, items: Callable[[Reader, int], Iterable[list[bytes]]], what: str, *, skips_bom: bool = False
) -> Comparator:
    def run(answer: Reader, output: Reader, chunk_bytes: int) -> Comparison:
        return compare_multisets(items(answer, chunk_bytes), items(output, chunk_bytes), what)

    return Comparator(kind, run, skips_bom=skips_bom)


def _sorted(options: ComparatorOptions) -> Comparator:
    by = options.choice("by", ("lines", "tokens"))
    stages, lower = _unicode(options)
    normalizer = _chain(*([Lowercase] if lower else stages or [RawBytes]))
    if by == "lines":
        return _unordered("sorted", lambda side, size: non_blank_lines(side, size, normalizer()), by, skips_bom=True)
    return _unordered(
        "sorted", lambda side, size: token_lists(side, bytes.split, size, normalizer()), by, skips_bom=True
    )


def _lcmp(_: ComparatorOptions) -> Comparator:
    run = _by_stream(
        CollapsedSpacesPerLine,
        unit="line",
        split=split_lines,
        answer_tail=b"\n",
        output_tail=b"\n",
        extra=ComparisonStatus.FORMAT_ERROR,
    )
    return Comparator("lcmp", run, skips_bom=True)


def _fcmp(_: ComparatorOptions) -> Comparator:
    """Compare lines. The reference stops at an empty last line of the answer; then only whitespace may follow."""

    def lines(*, drops: bool) -> Normalizer:
        return NormalizerChain(LineEndings(lone_cr=False, final_lf=True), LastEmptyLine(drops=drops))

    run = _by_stream(
        lambda: lines(drops=False),
        answer_normalizer=lambda: lines(drops=True),
        unit="line",
        split=split_lines,
        answer_tail=b"\n",
        output_tail=_TESTLIB_BLANKS,
        extra=ComparisonStatus.FORMAT_ERROR,
    )
    return Comparator("fcmp", run, skips_bom=True)


def _strict(kind: str, check: CheckToken, ends: ComparisonStatus, exactly: int | None = None) -> Comparator:
    """A testlib checker that parses every token; ``ends`` is the status of an extra or missing token."""
    rule = TokenRule(check, split_testlib, reflexive=False, token_count=exactly, extra=ends, missing=ends)
    return Comparator(kind, _by_token(rule), accepts_identical=False, skips_bom=True)


def _ends(exactly: int | None) -> ComparisonStatus:
    return ComparisonStatus.WRONG_ANSWER if exactly is None else ComparisonStatus.FORMAT_ERROR


def _integers(kind: str, *, exactly: int | None = None, bound: int | None = 2**63) -> Comparator:
    check = tokens.strict_values(lambda token: numbers.strict_integer(token, bound), lambda a, b: a == b, "an integer")
    return _strict(kind, check, _ends(exactly), exactly)


def _doubles(kind: str, close: Callable[[float, float], bool], *, exactly: int | None = None) -> Comparator:
    check = tokens.strict_values(numbers.testlib_float, lambda a, b: close(float(str(a)), float(str(b))), "a number")
    return _strict(kind, check, ComparisonStatus.FORMAT_ERROR, exactly)


def _rcmp(options: ComparatorOptions) -> Comparator:
    """Without ``epsilon``, ``rcmp`` compares one number with 1.5e-6; with it, it is rcmp4, rcmp6 or rcmp9."""
    epsilon = options.number("epsilon")
    if epsilon is None:
        return _doubles("rcmp", numbers.Tolerance(absolute=1.5e-6), exactly=1)
    return _doubles("rcmp", numbers.testlib_close(epsilon))


def _yesno(kind: str, exactly: int | None) -> Comparator:
    def read(token: bytes) -> bytes | None:
        word = token.upper()
        return word if word in (b"YES", b"NO") else None

    return _strict(kind, tokens.strict_values(read, lambda a, b: a == b, "YES or NO"), _ends(exactly), exactly)


def _dmoj_sorted(options: ComparatorOptions) -> Comparator:
    if options.choice("split_on", ("lines", "whitespace")) == "lines":
        return _unordered("dmoj-sorted", lambda side, size: dmoj_lines(side, size, RawBytes()), "lines")
    return _unordered("dmoj-sorted", lambda side, size: token_lists(side, bytes.split, size), "tokens")


def _dmoj_floats(options: ComparatorOptions) -> Comparator:
    precision = options.number("precision")
    mode = options.choice("error_mode", ("default", "absolute", "relative"))
    close = numbers.dmoj_close(10.0 ** -int(6 if precision is None else precision), mode)

    def run(answer: Reader, output: Reader, chunk_bytes: int) -> Comparison:
        return compare_float_lines(raw_lines(answer, chunk_bytes), raw_lines(output, chunk_bytes), close)

    return Comparator("dmoj-floats", run, accepts_identical=False)


def _dmoj_linecount(options: ComparatorOptions) -> Comparator:
    options.choice("feedback", ("true", "false", "True", "False"))
    return Comparator(
        "dmoj-linecount",
        lambda answer, output, size: count_lines(raw_lines(answer, size), raw_lines(output, size)),
    )


def _dmoj_identical(options: ComparatorOptions) -> Comparator:
    options.choice("pe_allowed", ("true", "false", "True", "False"))
    return Comparator("dmoj-identical", _by_stream(RawBytes, unit="line", split=split_lines))


def _white_diff(_: ComparatorOptions) -> Comparator:
    run = _by_stream(CollapsedSpacesPerLine, unit="line", split=split_lines, answer_tail=b"\n", output_tail=b"\n")
    return Comparator("white-diff", run)


BUILTIN_COMPARATORS: Final[Mapping[str, Callable[[ComparatorOptions], Comparator]]] = {
    "icpc": lambda options: _icpc("icpc", numbers.scanf_float, (TruncatedAtNul,), options),
    "icpc-2025-09": lambda options: _icpc("icpc-2025-09", numbers.spec_float, (), options),
    "exact": _exact,
    "line": _line,
    "token": _token,
    "float": _float,
    "sorted": _sorted,
    "integers": lambda _: _integers("integers"),
    "yesno": lambda _: _yesno("yesno", 1),
    "nyesno": lambda _: _yesno("nyesno", None),
    "wcmp": lambda _: Comparator(
        "wcmp", _by_stream(lambda: CollapsedSpaces(split_testlib), split=split_testlib), skips_bom=True
    ),
    "lcmp": _lcmp,
    "fcmp": _fcmp,
    "ncmp": lambda _: _integers("ncmp"),
    "icmp": lambda _: _integers("icmp", exactly=1, bound=2**31),
    "hcmp": lambda _: _integers("hcmp", exactly=1, bound=None),
    "rcmp": _rcmp,
    "rcmp4": lambda _: _doubles("rcmp4", numbers.testlib_close(1e-4)),
    "rcmp6": lambda _: _doubles("rcmp6", numbers.testlib_close(1e-6)),
    "rcmp9": lambda _: _doubles("rcmp9", numbers.testlib_close(1e-9)),
    "rncmp": lambda _: _doubles("rncmp", numbers.Tolerance(absolute=1.5e-5)),
    "dmoj-standard": lambda _: Comparator("dmoj-standard", _by_stream(DmojWhitespace)),
    "dmoj-identical": _dmoj_identical,
    "dmoj-easy": lambda _: Comparator("dmoj-easy", compare_letters),
    "dmoj-rstripped": lambda _: Comparator("dmoj-rstripped", _by_stream(RightStripped, unit="line", split=split_lines)),
    "dmoj-sorted": _dmoj_sorted,
    "dmoj-floats": _dmoj_floats,
    "dmoj-linecount": _dmoj_linecount,
    "white-diff": _white_diff,
}


def build_comparator(kind: str, args: Sequence[str] = (), options: Mapping[str, str] | None = None) -> Comparator:
    """Make the comparator ``kind`` with its arguments and named options."""
    make = BUILTIN_COMPARATORS.get(kind)
    if make is None:
        raise InvalidInput(
            f"checker: unknown comparator {kind!r}; use one of {', '.join(BUILTIN_COMPARATORS)}.", field="checker"
        )
    given = ComparatorOptions(kind, args, options or {})
    made = make(given)
    given.refuse_unknown()
    return made
