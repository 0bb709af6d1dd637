"""The rules of a contest in sentences, for its page."""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.contests.formats import get_format
from adjudge.contests.formats.homework import HomeworkConfig
from adjudge.domain.contest import ContestFeedback, ScoreboardVisibility
from adjudge.store.contests.models import ContestSettings
from adjudge.web.contest_durations import format_seconds
from adjudge.web.i18n import Translations


def list_rules(t: Translations, settings: ContestSettings, language_names: dict[str, str]) -> list[str]:
    """What a participant should know before the start."""
    return list(_rules(t, settings, language_names))


def _rules(t: Translations, settings: ContestSettings, language_names: dict[str, str]) -> Iterator[str]:
    yield from _scoring_rules(t, settings)
    if settings.window_us is not None:
        yield t("contest_rule.window", time=format_seconds(settings.window_us // 1_000_000))
    yield t.label("contest_rule", f"feedback_{settings.feedback}")
    is_hidden = settings.feedback is ContestFeedback.NONE
    shown_to = ScoreboardVisibility.HIDDEN if is_hidden else settings.scoreboard_visibility
    yield t.label("contest_rule", f"scoreboard_{shown_to}")
    if settings.allowed_languages is not None:
        names = ", ".join(language_names.get(item, item) for item in settings.allowed_languages)
        yield t("contest_rule.languages", languages=names)
    if settings.submissions_per_minute is not None:
        yield t("contest_rule.per_minute", most=settings.submissions_per_minute)
    if settings.submissions_per_problem is not None:
        yield t("contest_rule.per_problem", most=settings.submissions_per_problem)
    yield t.label("contest_rule", f"late_{settings.late_policy}")
    if settings.allows_teams:
        yield t("contest_rule.teams", most=settings.max_team_members)
    if settings.rated:
        yield t("contest_rule.rated")


def _scoring_rules(t: Translations, settings: ContestSettings) -> Iterator[str]:
    config = get_format(settings.format).parse_config(settings.format_cfg)
    if isinstance(config, HomeworkConfig):
        yield t.label("contest_rule", config.counts)
        if config.deadline_us is not None:
            per_day, most = config.late_penalty_percent_per_day, config.late_penalty_cap_percent
            yield t("contest_rule.late_penalty", percent=per_day, most=most)
        return
    yield t.label("contest_rule", settings.format)
    penalty_min = getattr(config, "penalty_minutes", None)
    if penalty_min is not None:
        yield t("contest_rule.penalty", minutes=penalty_min)
