"""The settings of the service, and the text that documents them."""

from torchtriage.data_dir import default_data_dir
from torchtriage.settings.options import PREFIX, Settings, documentation

__all__ = ["PREFIX", "Settings", "default_data_dir", "documentation"]
