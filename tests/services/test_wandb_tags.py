"""Tags on a run in W&B, from a log that shows its page on; on both databases."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.chat.test_wandb import KEY, failed, fake
from tests.services.logs import OUT_OF_MEMORY, triaged
from torchtriage.domain.notice import SendState
from torchtriage.services import outbox
from torchtriage.services.service import close_service, open_service
from torchtriage.settings import Settings

PAGE = "wandb: 🚀 View run happy-disco-4 at: https://{host}/acme/llm/runs/i31zyslt\n"


@pytest.mark.parametrize(("host", "tags"), [("wandb.ai", ["baseline", "torchtriage:cuda.oom"]), ("other.example", ["baseline"])])  # fmt: skip
def test_the_run_whose_page_a_log_shows_is_tagged_by_the_second_try(
    tmp_path: Path, database_url: str, host: str, tags: list[str]
) -> None:
    with fake() as running:
        running.refusals = [failed("try again", 503)]
        settings = Settings(
            data_dir=tmp_path,
            database_url=database_url,
            workers=0,
            wandb_url=running.url,
            wandb_token=KEY,
            wandb_hosts=("wandb.ai",),
            allow_private_calls=True,
        )
        service = open_service(settings, lambda *_: None, working=False)
        incident = triaged(service, PAGE.format(host=host).encode() + OUT_OF_MEMORY, "1")
        now = datetime.now(UTC)
        outbox.send_one(service, now)
        outbox.send_one(service, now + timedelta(hours=1))
        assert [item.state for item in outbox.list_outbox(service).items] == [SendState.SENT]
        close_service(service)
    assert running.tags == tags
    told = json.loads(running.config).get("torchtriage", {"value": {"incident": incident}})
    assert told["value"]["incident"].endswith(incident)
