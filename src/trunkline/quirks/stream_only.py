"""Only streams are served well: they are asked for also where the client wants none, and the answer is collected.

Some models of DashScope refuse anything else (wire.md section 8). llama.cpp's server notices that a client has left by
what it writes to it: unstreamed calls that nobody waits for would hold their slots to the end while any stream goes on.
"""

from trunkline.core.quirk import Quirk

QUIRK = Quirk("stream_only", streamed=True)
