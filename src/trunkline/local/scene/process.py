"""The parent's side of the scene model."""

from trunkline.local.supervisor import SupervisedChild

SCENE = "trunkline-scene"
"""The model's own name; it draws both."""


def local_scene(encoder: str = "libx264") -> SupervisedChild:
    """Supervise one process for pictures and films; films are encoded by this H.264 encoder of FFmpeg."""
    return SupervisedChild("local/image and local/video", "trunkline.local.scene", {"encoder": encoder})
