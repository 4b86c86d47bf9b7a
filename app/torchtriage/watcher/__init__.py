"""Watches a Kubernetes cluster for training jobs that fail and hands their logs to the service, over HTTP."""
