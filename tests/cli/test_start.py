"""What `serve` imports before its first request: what is not here costs neither time nor memory at the start."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

IMPORTED = "import json, sys, trunkline.cli.main, trunkline.cli.serve, trunkline.app; print(json.dumps([*sys.modules]))"
NOT_AT_START = (
    "sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "asyncpg", "alembic", "dbos", "pydantic", "prometheus_client",
    "rich", "redis", "obstore", "opentelemetry", "PIL", "av", "xllamacpp", "openai", "html", "statistics",
    "trunkline.inspection.examine", "trunkline.app_admin", "trunkline.cli.keys", "trunkline.dialects.gemini_chat",
)  # fmt: skip


def test_nothing_heavy_is_imported_at_the_start() -> None:
    told = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    imported = json.loads(told.stdout)
    assert "trunkline.app" in imported
    assert [name for name in imported if name in NOT_AT_START] == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_ends_in_order(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "trunkline", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        assert running.stderr is not None
        assert "serving on" in running.stderr.readline()
        running.send_signal(how)
        assert running.wait() == 0
