"""The settings of the service, and the text that documents them."""

from app.settings.forms import default_data_dir
from app.settings.options import PREFIX, Settings, documentation

__all__ = ["PREFIX", "Settings", "default_data_dir", "documentation"]
