"""A kit that makes failures: faults x launchers x versions of torch x wrappings, each log labelled by construction."""
