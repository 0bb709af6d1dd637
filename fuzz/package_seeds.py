"""Small valid packages of every format, and keywords of the formats, for mutation."""

from __future__ import annotations

import io
import zipfile

Contents = dict[str, str | bytes]


def _bytes(contents: Contents) -> dict[str, bytes]:
    return {name: data if isinstance(data, bytes) else data.encode() for name, data in contents.items()}


def _zip(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "1\n")
    return buffer.getvalue()


_NEW: Contents = {
    "problem.yaml": (
        "problem_format_version: 2025-09\ntype: [scoring]\nname: {en: A, sv: B}\nuuid: 1\n"
        "credits: {authors: [A, {name: B, email: c}], translators: {sv: D}}\nsource: [{name: S, url: u}]\n"
        "license: cc by\nlimits: {time_limit: 1.5, memory: 64, time_multipliers: {ac_to_time_limit: 2}}\n"
        "keywords: [a, b]\nlanguages: [cpp]\nconstants: {n: 5, m: {value: 6, tex: x}}\n"
    ),
    "data/sample/1.in": "1\n",
    "data/sample/1.ans": "1\n",
    "data/secret/test_group.yaml": "max_score: 100\noutput_validator_args: [float_tolerance, 1e-6]\n",
    "data/secret/a/test_group.yaml": "max_score: 40\nrequire_pass: sample\n",
    "data/secret/a/1.in": "{{n}}\n",
    "data/secret/a/1.ans": "1\n",
    "data/secret/a/1.yaml": "args: [x]\nhint: h\n",
    "data/secret/b/test_group.yaml": "max_score: 60\nscore_aggregation: min\nrequire_pass: [a]\n",
    "data/secret/b/1.in": "1\n",
    "data/secret/b/1.ans": "1\n",
    "data/secret/b/1.files/t": "1\n",
    "data/invalid_input/1.in": "\n",
    "statement/problem.en.md": "{{n}}",
    "input_validators/v.py": "print({{n}})",
    "submissions/accepted/a.py": "print(1)",
    "submissions/other/b.py": "# @EXPECTED_RESULTS@: TIMELIMIT\n",
    "submissions/submissions.yaml": "other/*: {required: [TLE], score: [1, 2], secret/a: {permitted: [AC]}}\n",
}
_LEGACY: Contents = {
    "problem.yaml": "type: scoring\nvalidation: custom score\nvalidator_flags: a b\nauthor: A and B\nname: X\n",
    "domjudge-problem.ini": "timelimit = 2\nname='x'\nshort-name = y\n",
    ".timelimit": "2\n",
    "data/testdata.yaml": "on_reject: continue\ngrader_flags: ignore_sample\n",
    "data/secret/testdata.yaml": "range: 0 100\naccept_score: 5\ngrader_flags: min first_error\n",
    "data/secret/1.in": "1\r\n",
    "data/secret/1.ans": "1\n",
    "data/secret/a/b/2.in": "1\n",
    "data/secret/a/b/2.ans": "1\n",
    "output_validators/v/run": "#!",
    "problem_statement/problem.tex": "\\problemname{X}\n",
    "submissions/accepted/a.cpp": "// @EXPECTED_SCORE@: 5\n",
    "submissions.json": '{"submissions/accepted/a.cpp": {"langid": "cpp"}}',
}
_POLYGON: Contents = {
    "problem.xml": (
        '<?xml version="1.0" encoding="utf-8"?>\n<problem short-name="s" revision="1">\n'
        '<names><name language="english" value="S"/></names>\n'
        '<statements><statement language="english" path="statements/english/p.tex" type="application/x-tex"/>'
        "</statements>\n"
        '<judging input-file="" output-file=""><testset name="tests"><time-limit>1000</time-limit>'
        "<memory-limit>1048576</memory-limit><test-count>2</test-count>"
        "<input-path-pattern>tests/%02d</input-path-pattern><answer-path-pattern>tests/%02d.a</answer-path-pattern>"
        '<tests><test method="manual" sample="true" group="1" points="5"/>'
        '<test method="generated" cmd="gen 1 2" group="2" points="6"/></tests>'
        '<groups><group name="1" points-policy="complete-group"/>'
        '<group name="2"><dependencies><dependency group="1"/></dependencies></group></groups>'
        "</testset></judging>\n"
        '<files><resources><file path="files/t.h" type="h.g++"/></resources>'
        '<executables><executable><source path="files/gen.cpp" type="cpp.g++17"/></executable></executables></files>\n'
        '<assets><checker name="std::wcmp.cpp" type="testlib"><source path="files/c.cpp" type="cpp.g++"/></checker>'
        '<validators><validator><source path="files/v.cpp" type="cpp.g++"/></validator></validators>'
        '<solutions><solution tag="main"><source path="solutions/a.cpp" type="cpp.g++"/></solution></solutions>'
        "</assets>\n</problem>\n"
    ),
    "tests/01": "1\r\n",
    "tests/01.a": "1\n",
    "files/gen.cpp": "",
    "files/c.cpp": "",
    "files/v.cpp": "",
    "files/t.h": "",
    "solutions/a.cpp": "",
    "statements/english/p.tex": "x",
    "statements/english/problem-properties.json": '{"authorName": "A"}',
}
_DMOJ: Contents = {
    "init.yml": (
        "archive: t.zip\npoints: 5\nchecker: {name: floats, args: {precision: 3}}\n"
        "generator: {source: g.py, language: PY3}\nsymlinks: {a.in: /dev/stdin}\ntest_cases:\n"
        "- {in: 1.in, out: 1.out}\n- points: 20\n  batched:\n  - {in: 2.in, out: 2.out}\n  - {generator_args: [1]}\n"
        "- {dependencies: [1], batched: [{in: 1.in, out: 1.out}]}\n"
    ),
    "t.zip": _zip(["1.in", "1.out", "2.in", "2.out"]),
    "g.py": "",
}
_DMOJ_NAMES: Contents = {
    "init.yml": (
        "archive: t.zip\ntest_cases:\n  input_format: ^(?P<batch>\\d+)-(?P<case>\\d+).in$\n"
        "  output_format: ^(?P<batch>\\d+)-(?P<case>\\d+).out$\n  case_points: [1, 2]\n"
        "interactive: {files: i.cpp, type: testlib}\n"
    ),
    "t.zip": _zip(["1-1.in", "1-1.out", "2-1.in", "2-1.out"]),
    "i.cpp": "",
}
_CMS: Contents = {
    "task.yaml": (
        "name: s\ntitle: S\ntime_limit: 1\nmemory_limit: 64\nn_input: 3\ninfile: ''\npublic_testcases: 0,1\n"
        "score_type: GroupMin\nscore_type_parameters: [[40, 1], [60, '00[12]']]\n"
    ),
    "gen/GEN": "#ST: 40\n1\n#ST: 60\n#COPY: a\n2\n",
    **{f"{kind}/{kind}{number}.txt": "1\n" for kind in ("input", "output") for number in range(3)},
    "check/checker.cpp": "",
    "check/manager": "",
    "sol/stub.cpp": "",
    "sol/solution.py": "",
}
_PLAIN: Contents = {"1.in": "1\r\n", "1.out": "1\n", "b/2.in": "1\n", "b/2.ans": "1\n"}

SEEDS = [_bytes(contents) for contents in (_NEW, _LEGACY, _POLYGON, _DMOJ, _DMOJ_NAMES, _CMS, _PLAIN)]
WORDS = [
    *b"null ~ yes inf -inf nan 1e999 -1 0 99999999999999999999 [] {} [[]] ''".split(),
    b"9" * 5000,
    b"&a [1]",
    b"*a",
    b"<<: *a",
    b"!!python/object:os.system",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\0",
    b"\t",
    b"{{n}}",
    b"%%",
    b"(a+)+",
    b"<!DOCTYPE x>",
    b"&amp;",
    b"../",
    b"[" * 100,
    b"scoring",
    b"interactive",
    b"multi-pass",
    b"submit-answer",
    b"unbounded",
    b"points",
]
