"""``/v1/allocation_candidates``: candidates by page, all pages of one version."""

from typing import Any

from roost.fleet import Fleet
from roost.ledger.feed import token_at
from roost.model.request import CandidateQuery
from roost.placement.errors import BadRequest, Gone
from roost.placement.http.answers import answer
from roost.placement.http.candidates import check_known, describe
from roost.placement.http.microversions import LATEST
from roost.placement.http.provider_texts import ProviderTexts
from roost.placement.http.request import Request, Response
from roost.placement.v1.cursor import Cursor, fingerprint, malformed, read_cursor
from roost.placement.v1.parameters import parse
from roost.placement.v1.past import Reading
from roost.placement.v1.resource import Resource, Service


class Candidates(Resource):
    """/v1/allocation_candidates"""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._texts = ProviderTexts()

    async def on_get(self, req: Request, resp: Response) -> None:
        asked = parse(req)
        limit = asked.numbers["limit"]
        if "cursor" in asked.texts:
            document = await self._page(asked.query, limit, asked.texts["cursor"])
        else:
            document = await self._first_page(asked.query, limit)
        answer(req, resp, document)

    async def _first_page(self, query: CandidateQuery, limit: int) -> dict[str, Any]:
        fleet = await self.ledger.current()
        check_known(fleet, query)
        # On the fleet itself, which may change at the next await.
        reading = Reading(fleet, query)
        document = _page_of(reading, fleet, self._texts, limit)
        more = Cursor(fleet.version, reading.position, fingerprint(query)) if reading.has_more() else None
        document["next"] = await self._sign(more)
        return document

    async def _page(self, query: CandidateQuery, limit: int, text: str) -> dict[str, Any]:
        cursor = read_cursor(text)
        await self._check_signed(cursor, text)
        if fingerprint(query) != cursor.query:
            raise BadRequest("Invalid cursor: it belongs to another query; begin without one.")
        moment = await self.past.at(cursor.version)
        reading = await moment.reading(query, cursor.query, cursor.offset)
        document = _page_of(reading, moment.fleet, moment.texts, limit)
        more = None
        if reading.has_more():
            more = Cursor(cursor.version, reading.position, cursor.query)
            moment.keep(reading, cursor.query)
        document["next"] = await self._sign(more)
        return document

    async def _sign(self, cursor: Cursor | None) -> str | None:
        return None if cursor is None else cursor.signed(await self._token(cursor.version))

    async def _check_signed(self, cursor: Cursor, text: str) -> None:
        head = (await self.ledger.current()).version
        if cursor.version > head or not cursor.is_signed(text, await self._token(cursor.version)):
            raise malformed()

    async def _token(self, version: int) -> str:
        token = await self.ledger.database.read(lambda connection: token_at(connection, version))
        if token is None:
            raise Gone(f"Version {version} has been trimmed away: begin without a cursor.")
        return token


def _page_of(reading: Reading, fleet: Fleet, texts: ProviderTexts, limit: int) -> dict[str, Any]:
    found = reading.read(limit)
    return {**describe(fleet, reading.needs, found, texts, LATEST), "version": fleet.version}
