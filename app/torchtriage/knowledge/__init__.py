"""The knowledge base: reads YAML files and returns entries (torchtriage.domain.entry)."""

from torchtriage.package_data import data_folder

BUILT_IN = data_folder("knowledge_base")
