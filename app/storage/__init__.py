"""The only SQL, and the only place that touches stored logs; values of app.domain in and out."""
