"""``limits`` of ``problem.yaml`` and their defaults."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.limits import KIB, MIB, Limits
from adjudge.domain.problem import ProblemLimits
from adjudge.packages.safe_yaml import YamlSection

DEFAULT_TIME_MS = 10_000
DEFAULT_MEMORY_MIB = 2048
DEFAULT_OUTPUT_MIB = 8
MAX_MIB = 1 << 20
"""A tebibyte: more is a mistake (bytes or kilobytes instead of mebibytes)."""


def with_time(limits: ProblemLimits, time_ms: int, *, is_given: bool = True) -> ProblemLimits:
    """Set the time limit, and a wall time limit that only a sleeping program reaches first."""
    run = replace(limits.run, cpu_ms=time_ms, wall_ms=default_wall_ms(time_ms))
    return replace(limits, run=run, has_explicit_time_limit=is_given)


def default_wall_ms(time_ms: int) -> int:
    """The wall time limit for a CPU time limit."""
    return 3 * time_ms + 1_000


def run_limits(time_ms: int, memory_bytes: int, output_bytes: int) -> Limits:
    """The limits of a submission from the three that packages state."""
    return Limits(
        cpu_ms=time_ms,
        wall_ms=default_wall_ms(time_ms),
        memory_bytes=memory_bytes,
        output_bytes=output_bytes,
        file_bytes=max(output_bytes, Limits().file_bytes),
        work_bytes=max(2 * output_bytes, Limits().work_bytes),
    )


def read_limits(section: YamlSection, *, is_legacy: bool) -> ProblemLimits:
    """Read ``limits``; legacy packages have other names for the multipliers and no time limit."""
    limits = section.take_section("limits")
    time_s = limits.take_number("time_limit", 0.0, above=True)
    run = run_limits(
        max(1, round(time_s * 1000)) if time_s else DEFAULT_TIME_MS,
        _mib(limits, "memory", DEFAULT_MEMORY_MIB),
        _mib(limits, "output", DEFAULT_OUTPUT_MIB),
    )
    ac_to_time_limit, time_limit_to_tle = _multipliers(limits, is_legacy=is_legacy)
    result = ProblemLimits(
        run=run,
        has_explicit_time_limit=bool(time_s),
        code_bytes=limits.take_integer("code", 128, least=1) * KIB,
        compile_ms=_ms(limits, "compilation_time", 60.0),
        compile_memory_bytes=_mib(limits, "compilation_memory", DEFAULT_MEMORY_MIB),
        validation_ms=_ms(limits, "validation_time", 60.0),
        validation_memory_bytes=_mib(limits, "validation_memory", DEFAULT_MEMORY_MIB),
        validation_output_bytes=_mib(limits, "validation_output", DEFAULT_OUTPUT_MIB),
        ac_to_time_limit=ac_to_time_limit,
        time_limit_to_tle=time_limit_to_tle,
        time_resolution_ms=_ms(limits, "time_resolution", 1.0),
    )
    limits.node("validation_passes")
    limits.report_unknown_keys(is_error=not is_legacy)
    return result


def _multipliers(limits: YamlSection, *, is_legacy: bool) -> tuple[float, float]:
    if is_legacy:
        slower = limits.take_number("time_multiplier", 5.0, above=True)
        return slower, limits.take_number("time_safety_margin", 2.0, above=True)
    inner = limits.take_section("time_multipliers")
    slower = inner.take_number("ac_to_time_limit", 2.0, least=1.0)
    margin = inner.take_number("time_limit_to_tle", 1.5, least=1.0)
    inner.report_unknown_keys(is_error=True)
    return slower, margin


def _ms(limits: YamlSection, key: str, default_s: float) -> int:
    return max(1, round(limits.take_number(key, default_s, above=True) * 1000))


def _mib(limits: YamlSection, key: str, default: int) -> int:
    value = limits.take_integer(key, default, least=1)
    if value > MAX_MIB:
        limits.error(key, f"{value} MiB is more than any machine has.", "The unit is MiB.")
        value = default
    return value * MIB
