"""Pictures that clients send along: links, our own links, data URLs, uploads; put by for the job that needs them."""

from msgspec.structs import replace

from trunkline.calls.media_intake import MediaIntake
from trunkline.calls.media_links import MediaLinks
from trunkline.core.caller import Caller
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput
from trunkline.core.state import MediaIndex


class MediaInputs:
    """Finds or fetches a picture, once, before its job is made."""

    def __init__(self, intake: MediaIntake, index: MediaIndex, links: MediaLinks) -> None:
        self._intake = intake
        self._index = index
        self._links = links

    async def hold(self, one: MediaInput, caller: Caller, param: str, *, links: bool) -> MediaInput:
        """Give the picture as a job keeps it: by the hash of its bytes, or, where `links` are taken, by its link.

        `param` is the endpoint's word for such a picture. Raises GatewayError `invalid_value`.
        """
        try:
            return await self._hold(one, caller, links=links)
        except GatewayError as error:
            if error.code == "invalid_value" and not error.param:
                error.param = "mask" if one.role == "mask" else param
            raise

    async def _hold(self, one: MediaInput, caller: Caller, *, links: bool) -> MediaInput:
        if one.file_id:
            return await self._upload(one, caller)
        seen = self._links.recognise(one.url, caller.link_base) if one.url else None
        if seen is not None:
            record = await self._index.get(seen.media_id)
            if record is None or not (seen.signed or record.key_id == caller.key.id):
                raise GatewayError("invalid_value", f"There is no picture at {one.url} (any more).", param="image_url")
            if record.mime_type.startswith("video/"):
                raise GatewayError("invalid_value", f"{one.url} is a film; a picture is needed.", param="image_url")
            return MediaInput(mime_type=record.mime_type, role=one.role, sha256=record.sha256)
        if links and one.url.startswith(("http://", "https://")):
            return one
        return replace(await self._intake.hold(one, caller.key.id), role=one.role)

    async def _upload(self, one: MediaInput, caller: Caller) -> MediaInput:
        record = await self._index.get_file(one.file_id)
        if record is None or record.key_id != caller.key.id:
            raise GatewayError("invalid_value", f"There is no file {one.file_id!r}.", param="file_id")
        return MediaInput(mime_type=record.mime_type, role=one.role, sha256=record.sha256)
