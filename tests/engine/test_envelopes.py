import pytest

from tests.encoded_logs import ENVELOPES
from tests.engine.test_streams import CULPRIT, HEALTHY, LOG, OUT_OF_MEMORY
from tests.logs import text
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes


@pytest.mark.parametrize("form", ENVELOPES)
def test_a_log_means_the_same_in_every_envelope(engine: Engine, form: str) -> None:
    content, numbers = ENVELOPES[form](LOG)
    verdict = engine.triage(from_bytes(content))
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank, root.evidence[0].line) == ("cuda.oom", 2, numbers[CULPRIT])
    assert OUT_OF_MEMORY[:60] in root.evidence[0].text
    assert verdict.fingerprint == engine.triage(from_bytes(text(LOG))).fingerprint


@pytest.mark.parametrize("form", ENVELOPES)
def test_a_healthy_log_is_healthy_in_every_envelope(engine: Engine, form: str) -> None:
    content, _ = ENVELOPES[form](HEALTHY)
    assert engine.triage(from_bytes(content)).outcome == "healthy"
