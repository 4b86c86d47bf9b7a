"""The storage: all SQL, and all access to stored logs. Takes and returns values of torchtriage.domain."""
