"""The scene model draws, in a process of its own; the rest of what it does is in `tests/faults/local`."""

import asyncio
import base64
import io
from urllib.parse import urlsplit

from gateway import Client
from PIL import Image

from trunkline.local.scene.process import local_scene


async def test_it_draws_under_the_supervisor() -> None:
    scene = local_scene()
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.run())
        address = await scene.address()
        client = Client(urlsplit(address.base_url).port or 0)
        body = {"prompt": "a girl and a glorp", "size": "256x256", "output_format": "webp"}
        answer = await client.ask(body, "/v1/images/generations", authorization=f"Bearer {address.key}")
        [drawn] = (await answer.json())["data"]
        answer.leave()
        scene.stop()
    picture = Image.open(io.BytesIO(base64.b64decode(drawn["b64_json"])))
    assert (picture.format, picture.size) == ("WEBP", (256, 256))
    assert "glorp" in drawn["revised_prompt"]
