"""Where the MJCF of the duck comes from."""

from microduck.scene.resolve import BUILT_IN, resolve_scene

__all__ = ["BUILT_IN", "resolve_scene"]
