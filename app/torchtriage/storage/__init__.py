"""The only SQL, and the only place that touches stored logs; values of torchtriage.domain in and out."""
