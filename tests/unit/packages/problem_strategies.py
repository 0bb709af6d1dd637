"""Random problems in the shape of 2025-09, for properties that must hold of every one of them."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from adjudge.domain.limits import MIB
from adjudge.domain.problem import (
    Aggregate,
    Case,
    Expectation,
    Feedback,
    Grading,
    Group,
    JurySubmission,
    OnReject,
    PackageFormat,
    Problem,
    ProblemLimits,
    ProblemSource,
    ProblemStatement,
    SelfTest,
    SelfTestKind,
    TimeBound,
)
from adjudge.domain.programs import Checker, FileRef, InputValidator, NativeChecker, Program, Stub
from adjudge.packages.files import PackageFiles
from adjudge.packages.icpc.expectations import DEFAULTS, ICPC_VERDICTS, verdicts
from adjudge.packages.icpc.limits import run_limits
from adjudge.packages.manifest import all_paths

TRICKY = [
    "no",
    "on",
    "1e3",
    "5:00:00",
    "2025-09-01",
    "0x10",
    "~",
    "null",
    "a: b",
    "# x",
    "- y",
    "'",
    '"',
    "{{n}}",
    "é ü",
    "[",
    "true",
]
WORDS = st.one_of(
    st.sampled_from([word for word in TRICKY if word not in ("~", "null")]),
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=12),
)
ARGS = st.lists(WORDS.filter(lambda word: "{{" not in word), max_size=3).map(tuple)
"""Without constants, which are replaced when a package is read."""
STEMS = st.text("abcXYZ019_", min_size=1, max_size=4)
POINTS = st.integers(0, 50).map(float)
VERDICTS = st.sets(st.sampled_from(sorted(ICPC_VERDICTS)), min_size=1).map(verdicts)
NUMBERS = st.integers(0, 1000).map(float)


def _names(prefix: str) -> st.SearchStrategy[list[str]]:
    return st.lists(STEMS, min_size=1, max_size=4, unique=True).map(
        lambda stems: [f"{prefix}/{stem}" for stem in sorted(stems)]
    )


@st.composite
def _case(draw: st.DrawFn, name: str, group: Group, points: float | None, *, is_sample: bool) -> Case:
    refs = draw(st.lists(STEMS, max_size=2, unique=True))
    return Case(
        name=name,
        group=group.path,
        input=f"data/{name}.in",
        answer=f"data/{name}.ans",
        args=draw(ARGS),
        files=tuple(FileRef(ref, f"data/{name}.files/{ref}") for ref in sorted(refs)),
        input_validator_args=draw(ARGS),
        checker_args=draw(st.sampled_from([(), ("case_sensitive",), ("float_tolerance", "1e-6")])),
        points=points,
        is_sample=is_sample,
        full_feedback=draw(st.booleans()),
        description=draw(st.one_of(st.just(""), WORDS)),
        hint=draw(st.one_of(st.just(""), WORDS)),
    )


@st.composite
def _tests(draw: st.DrawFn, *, is_scored: bool) -> tuple[list[Group], list[Case]]:
    groups = [Group("", on_reject=OnReject.CONTINUE if is_scored else OnReject.BREAK, ignore_sample=is_scored)]
    cases: list[Case] = []
    if draw(st.booleans()):
        sample = Group("sample", max_points=0.0 if is_scored else None, feedback=Feedback.COMPLETE)
        groups.append(sample)
        names = draw(_names("sample"))
        cases += [draw(_case(name, sample, 0.0 if is_scored else 1.0, is_sample=True)) for name in names]
    secret = Group("secret")
    if is_scored:
        secret = _scored(secret, Aggregate.SUM, 100.0)
    groups.append(secret)
    paths = draw(st.one_of(st.just(["secret"]), _names("secret")))
    for path in paths:
        group = secret
        if path != "secret":
            group = Group(path)
            if is_scored:
                aggregate = draw(st.sampled_from([Aggregate.ALL, Aggregate.SUM, Aggregate.MIN]))
                earlier = [item.path for item in groups if item.aggregate is Aggregate.ALL]
                depends_on = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
                group = replace(_scored(group, aggregate, draw(POINTS)), depends_on=tuple(depends_on))
            groups.append(group)
        names = draw(_names(path))
        points = _points(group, len(names)) if is_scored else 1.0
        cases += [draw(_case(name, group, points, is_sample=False)) for name in names]
    return groups, cases


def _scored(group: Group, aggregate: Aggregate, points: float) -> Group:
    on_reject = OnReject.CONTINUE if aggregate is Aggregate.SUM else OnReject.BREAK
    return replace(group, aggregate=aggregate, max_points=points, on_reject=on_reject, feedback=Feedback.POINTS)


def _points(group: Group, count: int) -> float | None:
    if group.aggregate is Aggregate.ALL or group.max_points is None:
        return 0.0
    return group.max_points / count if group.aggregate is Aggregate.SUM else group.max_points


@st.composite
def _expectation(draw: st.DrawFn, cases: str) -> Expectation:
    bound = draw(st.sampled_from([TimeBound.NEITHER, TimeBound.LOWER, TimeBound.UPPER]))
    low = draw(st.one_of(st.none(), NUMBERS))
    return Expectation(
        cases=cases,
        permitted=draw(VERDICTS),
        required=draw(VERDICTS),
        score=None if low is None else (low, low + draw(NUMBERS)),
        message=draw(st.one_of(st.just(""), WORDS)),
        time_bound=bound,
    )


@st.composite
def _submission(draw: st.DrawFn, folder: str, stem: str) -> JurySubmission:
    expectations = [DEFAULTS[folder]] if folder in DEFAULTS else []
    expectations += draw(st.lists(_expectation(""), min_size=0 if folder in DEFAULTS else 1, max_size=1))
    globs = draw(st.lists(st.sampled_from(["secret", "secret/*", "{sample,secret/a*}"]), unique=True, max_size=2))
    expectations += [draw(_expectation(glob)) for glob in globs]
    path = f"{folder}/{stem}"
    if draw(st.booleans()):
        refs: tuple[FileRef, ...] = (FileRef(f"{stem}.py", f"submissions/{path}.py"),)
        path += ".py"
    else:
        refs = tuple(FileRef(name, f"submissions/{path}/{name}") for name in ("lib.py", "main.py"))
    program = Program(
        path.partition("/")[2],
        refs,
        language=draw(st.sampled_from(["", "python3"])),
        entry_point=draw(st.sampled_from(["", "main.py"])),
    )
    authors = draw(st.lists(WORDS, max_size=2).map(tuple))
    return JurySubmission(path, program, tuple(expectations), authors, draw(st.booleans()))


@st.composite
def _limits(draw: st.DrawFn) -> ProblemLimits:
    is_given = draw(st.booleans())
    time_ms = draw(st.integers(1, 100_000)) if is_given else 10_000
    sizes = st.integers(1, 4096)
    return ProblemLimits(
        run=run_limits(time_ms, draw(sizes) * MIB, draw(sizes) * MIB),
        has_explicit_time_limit=is_given,
        code_bytes=draw(sizes) * 1024,
        compile_ms=draw(sizes) * 1000,
        compile_memory_bytes=draw(sizes) * MIB,
        validation_ms=draw(sizes) * 1000,
        validation_memory_bytes=draw(sizes) * MIB,
        validation_output_bytes=draw(sizes) * MIB,
        ac_to_time_limit=draw(st.sampled_from([1.0, 1.5, 2.0, 10.0])),
        time_limit_to_tle=draw(st.sampled_from([1.0, 1.25, 3.0])),
        time_resolution_ms=draw(st.integers(1, 5000)),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Make a problem that 2025-09 can express, with the paths that the format has for it."""
    is_scored = draw(st.booleans())
    groups, cases = draw(_tests(is_scored=is_scored))
    places = st.tuples(st.sampled_from([*DEFAULTS, "other"]), STEMS)
    submissions = [draw(_submission(*place)) for place in draw(st.lists(places, unique=True, max_size=3))]
    languages = draw(st.lists(st.sampled_from(["en", "sv", "pt-BR"]), min_size=1, unique=True))
    statements = [ProblemStatement(name, "md", f"statement/problem.{name}.md") for name in sorted(languages)]
    stubs = draw(st.lists(st.sampled_from(["cpp", "default"]), unique=True))
    many = draw(st.booleans())
    return Problem(
        short_name="problem",
        package_format=PackageFormat("icpc", "2025-09"),
        titles={name: draw(WORDS) for name in languages},
        uuid=draw(WORDS),
        version=draw(st.one_of(st.just(""), WORDS)),
        grading=Grading.SCORING if is_scored else Grading.PASS_FAIL,
        limits=draw(_limits()),
        allow_file_writing=draw(st.booleans()),
        languages=draw(st.lists(st.sampled_from(["cpp", "java"]), unique=True).map(tuple)),
        cases=tuple(cases),
        groups=tuple(groups),
        checker=Checker(native=NativeChecker.ICPC_2025_09),
        stubs=tuple(Stub(name, (FileRef("x", f"include/{name}/x"),)) for name in sorted(stubs)),
        input_validators=(InputValidator(Program("v.py", (FileRef("v.py", "input_validators/v.py"),))),)
        if many
        else (),
        submissions=tuple(sorted(submissions, key=lambda item: item.path.split("/", 1))),
        self_tests=(SelfTest(SelfTestKind.INVALID_INPUT, "invalid_input/1", "data/invalid_input/1.in"),)
        if many
        else (),
        statements=tuple(statements),
        attachments=(FileRef("a.txt", "attachments/a.txt"),) if many else (),
        constants=draw(st.dictionaries(st.sampled_from(["n", "big", "big.tex"]), WORDS)),
        credits=draw(
            st.dictionaries(
                st.sampled_from(["authors", "testers", "translators.sv"]), st.lists(WORDS, min_size=1).map(tuple)
            )
        ),
        sources=tuple(draw(st.lists(st.builds(ProblemSource, WORDS, st.one_of(st.just(""), WORDS)), max_size=2))),
        license=draw(st.sampled_from(["unknown", "cc by", "cc0"])),
        rights_owner=draw(st.one_of(st.just(""), WORDS)),
        keywords=draw(st.lists(WORDS, max_size=3).map(tuple)),
    )


def files_for(problem: Problem, folder: Path) -> PackageFiles:
    """Give every path of a problem a file of its own."""
    root = Path(tempfile.mkdtemp(dir=folder))
    found = {}
    for number, path in enumerate(sorted(set(all_paths(problem)))):
        found[path] = root / str(number)
        found[path].write_text(f"{path}\n")
    return PackageFiles(found, root / "derived")
