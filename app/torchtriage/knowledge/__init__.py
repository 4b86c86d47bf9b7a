"""The knowledge base: YAML files in, entries of torchtriage.domain out."""

from torchtriage.package_data import data_folder

BUILT_IN = data_folder("knowledge_base")
