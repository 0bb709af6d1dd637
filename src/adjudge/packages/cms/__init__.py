"""CMS's italy_yaml tasks: ``task.yaml``, ``input/``, ``output/``, ``gen/GEN``."""
