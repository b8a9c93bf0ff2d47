"""The child process of `local/image` and `local/video`: the scene model's server, on a loopback port."""

import socket

from msgspec import Struct

from trunkline.local.child import Parent


class Settings(Struct, forbid_unknown_fields=True):
    """What the parent hands over; `encoder` is the name of an H.264 encoder of FFmpeg."""

    key: str
    encoder: str = "libx264"


def main() -> None:
    """Serve, and end with the parent."""
    parent = Parent()
    settings = parent.settings(Settings)
    try:  # what draws is an extra, and that it is not there is told in one sentence
        from trunkline.local.scene.studio import Studio  # noqa: PLC0415

        studio = Studio()
        import av  # noqa: PLC0415 - this and the server while the first drawing process starts
        import uvicorn  # noqa: PLC0415 - which imports this file, and needs none of it

        from trunkline.local.scene.server import application  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        parent.refuse(f"{missing.name} is not installed: pip install 'trunkline[local]'.")
    if settings.encoder not in av.codecs_available:
        parent.refuse(f"the encoder {settings.encoder} is not in this build of FFmpeg.")
    listener = socket.create_server(("127.0.0.1", 0))
    app = application(studio, settings.key, settings.encoder)
    parent.ready(listener.getsockname()[1])
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    main()
