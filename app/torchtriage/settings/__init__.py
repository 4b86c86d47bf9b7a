"""The settings of the service, and the text that documents them."""

from torchtriage.settings.options import PREFIX, Settings, documentation
from torchtriage.settings.value_parsers import default_data_dir

__all__ = ["PREFIX", "Settings", "default_data_dir", "documentation"]
