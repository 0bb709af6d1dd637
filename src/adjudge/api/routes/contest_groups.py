"""Groups and organisations of the participants of contests."""

from __future__ import annotations

from fastapi import APIRouter

from adjudge.api.routes.contests import Member, Reader
from adjudge.api.routing import api_router
from adjudge.api.schema.contest_participants import ContestGroupsUpdate, GroupTimes, OrganizationBody
from adjudge.api.schema.contests import to_us
from adjudge.schema.contest_participants import (
    ContestGroupList,
    ContestGroupRead,
    ContestOrganizationList,
    ContestOrganizationRead,
    GroupTimesRead,
)
from adjudge.services.contest_groups import ContestGroupService


def router(groups: ContestGroupService) -> APIRouter:
    """Routes of groups and organisations."""
    routes = api_router("contest participants", "/contests")

    @routes.get("/{contest}/groups", summary="List groups of participants")
    async def list_groups(contest: str, viewer: Reader) -> ContestGroupList:
        found = await groups.list_groups(viewer, contest)
        return ContestGroupList(items=[ContestGroupRead.of(item) for item in found])

    @routes.put("/{contest}/groups", summary="Replace the groups of participants")
    async def save_groups(contest: str, body: ContestGroupsUpdate, viewer: Member) -> ContestGroupList:
        saved = await groups.save_groups(viewer, contest, [item.row() for item in body.groups])
        return ContestGroupList(items=[ContestGroupRead.of(item) for item in saved])

    @routes.post("/{contest}/groups/{group}:times", summary="Set delay and extra time of a group")
    async def times(contest: str, group: str, body: GroupTimes, viewer: Member) -> GroupTimesRead:
        changed = await groups.set_group_times(
            viewer,
            contest,
            group,
            delay_us=to_us(body.delay_sec),
            extra_us=to_us(body.extra_sec),
            reason=body.reason,
        )
        return GroupTimesRead(changed=changed)

    @routes.get(
        "/{contest}/organizations",
        summary="List organisations",
        description="All organisations of the installation, for organisers.",
    )
    async def list_organizations(contest: str, viewer: Member) -> ContestOrganizationList:
        found = await groups.list_organizations(viewer, contest)
        return ContestOrganizationList(items=[ContestOrganizationRead.of(item) for item in found])

    @routes.post(
        "/{contest}/organizations",
        status_code=201,
        summary="Create an organisation",
        description="All contests share organisations: one that exists is changed only with `contest:admin`.",
    )
    async def save_organization(contest: str, body: OrganizationBody, viewer: Member) -> ContestOrganizationRead:
        return ContestOrganizationRead.of(await groups.save_organization(viewer, contest, body.row()))

    return routes
