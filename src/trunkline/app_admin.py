"""The composition root's part for the operators' API."""

from collections.abc import Awaitable, Callable

from starlette.routing import Router

from trunkline.app_media import MediaParts
from trunkline.calls.keys import Keys
from trunkline.calls.open_calls import OpenCalls
from trunkline.calls.traces import Trace
from trunkline.http.admin.api import admin_routes
from trunkline.http.admin.calls import CallPages
from trunkline.http.admin.inspect import InspectPages
from trunkline.http.admin.jobs import JobPages
from trunkline.http.admin.keys import KeyPages
from trunkline.http.admin.media import MediaPages
from trunkline.http.admin.overview import OverviewPage
from trunkline.http.admin.providers import Known, ProviderPages
from trunkline.http.admin.session import Sessions
from trunkline.http.admin.usage import UsagePages
from trunkline.http.live import Live
from trunkline.routing.health import Health
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.media import SqlMediaIndex
from trunkline.storage.sql.reports import SqlReports


def admin_api(  # noqa: PLR0913 - what operators look at
    known: Callable[[], Known],
    sessions: Sessions,
    *,
    live: Live,
    keys: Keys,
    calls: OpenCalls,
    find_trace: Callable[[str], Awaitable[Trace | None]],
    health: Health,
    media: MediaParts,
    database: Database,
) -> Router:
    """Make the application of `/admin/api`; `known` says which providers there are now."""
    reports, jobs, index = SqlReports(database), SqlJobs(database), SqlMediaIndex(database)
    media_pages = MediaPages(live, index, media.links, media.retention, reports)
    providers = ProviderPages(known, health, reports)
    routes = admin_routes(
        sessions,
        [
            *OverviewPage(calls, jobs, index, reports, providers).endpoints,
            *CallPages(calls, media.engine, jobs, reports).endpoints,
            *JobPages(media.engine, jobs, index, media_pages, reports).endpoints,
            *KeyPages(keys, reports, live).endpoints,
            *UsagePages(reports).endpoints,
            *providers.endpoints,
            *media_pages.endpoints,
            *InspectPages(find_trace, calls.with_trace).endpoints,
        ],
    )
    return Router(routes)
