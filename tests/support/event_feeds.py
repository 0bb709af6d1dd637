"""Event feeds on a test store: a writer, clients of all views and versions, and the scoreboards that they must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.cli.wiring.judge import load_languages
from adjudge.contests.ccs.feed import FeedScope, FeedView, format_token, parse_token
from adjudge.contests.ccs.scoreboard import scoreboard_object
from adjudge.contests.ccs.version import CcsVersion
from adjudge.contests.exports import StateTimes
from adjudge.contests.ranking import rank_board
from adjudge.contests.times import load_times
from adjudge.domain.ids import new_id
from adjudge.relay.contest_feed import ContestFeedWriter
from adjudge.relay.feed_update import FeedOptions
from adjudge.services.ccs_feed import encode_lines
from adjudge.services.ccs_feed_source import CcsFeedSource, make_feed_view
from adjudge.services.image_info import ImageInfoCache
from adjudge.services.scoreboard_access import board_access
from adjudge.services.scoreboard_feed import read_live_board
from adjudge.store import Tx
from adjudge.store.contests import feed as feeds
from adjudge.store.contests import queries
from adjudge.store.contests.feed import FeedRow
from tests.support.contest_fixture import ContestFixture
from tests.support.feed_consumer import FeedConsumer, Object, computed_rows, expected_rows

AT_ONCE = FeedOptions(awards_us=0)
"""Awards are computed with every change."""


class _NoBlobs(DirectoryBlobStore):
    """No pictures."""

    def __init__(self) -> None:
        super().__init__(Path("/nonexistent"))


@dataclass
class FeedFixture:
    """The feeds of one contest."""

    contest: ContestFixture
    views: Sequence[FeedView] = tuple(FeedView)
    random: Random = field(default_factory=lambda: Random(7))
    writer: ContestFeedWriter = field(init=False)
    consumers: dict[tuple[FeedView, CcsVersion], FeedConsumer] = field(init=False)

    def __post_init__(self) -> None:
        self.writer = self.new_writer()
        self.consumers = {(view, version): FeedConsumer() for view in self.views for version in CcsVersion}

    def new_writer(self) -> ContestFeedWriter:
        """Another scheduler."""
        source = CcsFeedSource(load_languages(), ImageInfoCache(_NoBlobs()))
        return ContestFeedWriter(self.contest.store.database, source, options=AT_ONCE)

    async def open(self, view: FeedView) -> FeedRow:
        """Open the feed of a view as a client does."""
        return await self.contest.transact(lambda tx: feeds.open_feed(tx, new_id(), self.contest.contest_id, view))

    async def lines(self, view: FeedView, version: CcsVersion, since: str | None = None, limit: int = 1_000_000) -> str:
        """The events after a token, as they are sent."""
        feed = await self.open(view)
        sequence = 0 if since is None else parse_token(since, feed)
        events = await self.contest.store.database.read(lambda tx: feeds.after(tx, feed.id, sequence, limit=limit))
        return encode_lines(feed.id, events, version)

    async def update(self) -> None:
        """Write what changed, and let all clients read it: some in pieces, with repetitions of what they have read."""
        for view in self.views:
            await self.open(view)
        await self.writer.run_once()
        for (view, version), consumer in self.consumers.items():
            if consumer.tokens and self.random.random() < 0.5:
                consumer.token = self.random.choice(consumer.tokens)  # it has lost what came after this token
            while text := await self.lines(view, version, consumer.token, self.random.randint(1, 40)):
                consumer.read(text)

    async def scoreboard(self, view: FeedView, version: CcsVersion) -> Object:
        """The scoreboard endpoint in a view."""

        async def read(tx: Tx) -> Object:
            contest = await queries.find_contest(tx, self.contest.contest_id)
            found = await make_feed_view(tx, FeedScope(contest, await load_times(tx, contest), view))
            key = board_access(found, is_jury=found.sees_all).key
            if key is None:
                return {"rows": []}
            board = (await read_live_board(tx, key)).board()
            return scoreboard_object(
                board, rank_board(board), time_at=0, contest_time_us=0, state=StateTimes(), version=version
            )

        return await self.contest.store.database.read(read)

    async def check(self) -> None:
        """Update, and assert that every client computes the scoreboard of its view, also one that starts now."""
        await self.update()
        for (view, version), consumer in self.consumers.items():
            fresh = FeedConsumer()
            fresh.read(await self.lines(view, version))
            expected = expected_rows(await self.scoreboard(view, version))
            for client in (consumer, fresh):
                client.check_references()
                if expected:
                    assert computed_rows(client) == expected, (view, version)
            assert consumer.objects == fresh.objects, (view, version)


def sequence_of(token: str) -> int:
    """The sequence number in a token."""
    return int(token.rpartition("-")[2])


__all__ = ["FeedFixture", "format_token", "sequence_of"]
