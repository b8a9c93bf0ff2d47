"""What a read costs on the way to PostgreSQL."""

import asyncio

import pytest
from sqlalchemy import text
from way import Peer, Way

from trunkline.storage.sql.database import Database

pytestmark = pytest.mark.scale


class Counted(Way):
    """Notes what the server is sent."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.sent: list[bytes] = []

    async def carry(self, client: Peer, server: Peer) -> None:
        answers = asyncio.ensure_future(self.answer(client, server))
        while data := await client.some():
            self.sent.append(data)
            server.writer.write(data)
        answers.cancel()


async def test_what_is_read_at_one_go_is_asked_at_one_go(postgres_url: str) -> None:
    async with Counted(postgres_url).open() as way:
        database = Database.at(way.url)
        for _ in range(2):  # connects, and prepares the statement
            del way.sent[:]
            assert [tuple(row) for row in await database.rows(text("SELECT 1"))] == [(1,)]
        assert [data[:1] for data in way.sent] == [b"B"]  # bind and execute
        del way.sent[:]
        async with database.read() as connection:  # and a transaction is one again
            for _ in range(2):
                await connection.execute(text("SELECT 1"))
        kinds = [data[:1] for data in way.sent]
        assert kinds == [b"Q", b"B", b"B", b"Q"]
        assert b"BEGIN" in way.sent[0]
        assert b"ROLLBACK" in way.sent[-1]
        await database.close()
