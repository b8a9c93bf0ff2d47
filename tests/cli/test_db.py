"""`trunkline db`: upgrades, and copies that are whole while others write."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from click.testing import CliRunner, Result

from trunkline.calls.keys import Keys
from trunkline.cli.main import trunkline
from trunkline.config.secret_file import server_secret
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.keys import SqlKeys


def run(*arguments: object) -> Result:
    return CliRunner().invoke(trunkline, [str(argument) for argument in arguments])


def test_upgrade_says_what_it_did(tmp_path: Path) -> None:
    first = run("db", "upgrade", "--data-dir", tmp_path)
    assert (first.exit_code, first.stdout) == (0, "the database is at v0002 now; it was empty\n")
    again = run("db", "upgrade", "--data-dir", tmp_path)
    assert (again.exit_code, again.stdout) == (0, "the database is at v0002 already\n")
    with closing(sqlite3.connect(tmp_path / "trunkline.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = 'v9999'")
        database.commit()
    newer = run("db", "upgrade", "--data-dir", tmp_path)
    assert newer.exit_code == 1
    assert newer.stderr.startswith("trunkline: the database's schema is of another version of Trunkline")


def test_a_backup_opens_the_same_keys(tmp_path: Path) -> None:
    data, copied = tmp_path / "data", tmp_path / "copy"
    made = json.loads(run("keys", "create", "--name", "anna", "--json", "--data-dir", data).stdout)
    with closing(sqlite3.connect(data / "trunkline.db")) as writing:  # a gateway that is in the middle of something
        writing.execute("BEGIN IMMEDIATE")
        writing.execute("UPDATE keys SET name = 'half'")
        result = run("db", "backup", copied, "--data-dir", data)
        writing.rollback()
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"trunkline.db, secret → {copied}; pictures and films are in ")
    assert sorted(path.name for path in copied.iterdir()) == ["secret", "trunkline.db"]
    assert {path.stat().st_mode & 0o777 for path in copied.iterdir()} == {0o600}
    assert data.stat().st_mode & 0o777 == 0o700
    assert "anna" in run("keys", "list", "--data-dir", copied).stdout
    assert recognised(copied, made["key"])


def recognised(data_dir: Path, token: str) -> bool:
    async def ask() -> bool:
        database = Database.at(data_dir / "trunkline.db")
        try:
            return (await Keys(SqlKeys(database), server_secret(data_dir)).authenticate(token)).name == "anna"
        finally:
            await database.close()

    return asyncio.run(ask())


def test_a_backup_that_cannot_be(tmp_path: Path) -> None:
    nothing = run("db", "backup", tmp_path / "copy", "--data-dir", tmp_path / "none")
    assert nothing.exit_code == 1
    assert "trunkline.db: there is no database" in nothing.stderr
    run("db", "upgrade", "--data-dir", tmp_path / "data")
    full = run("db", "backup", tmp_path, "--data-dir", tmp_path / "data")
    assert full.exit_code == 1
    assert f"{tmp_path}: the directory is not empty" in full.stderr


def test_postgresql_has_tools_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "trunkline.toml"
    file.write_text(
        '[server]\nsecret = "01234567890123456789012345678901"\n'
        '[storage]\ndatabase = "postgresql://me:hunter2@db.example/trunkline"\n'
    )
    result = run("db", "backup", tmp_path / "copy", "--config", file)
    assert result.exit_code == 1
    assert "pg_dump --format=custom" in result.stderr
    assert "postgresql://me@db.example/trunkline" in result.stderr
    assert "hunter2" not in result.output
