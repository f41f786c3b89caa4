"""The backup and restore commands in docs/operations.md work exactly as written."""

import os
import stat
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
import yaml

from tests.install.page import postgres_environment
from tests.support import backup_steps
from tests.support.fleet import Fleet, running_fleet
from tests.support.needs import ROOT_USER, lacks, needs
from tests.support.postgres import connect, server_url

ROOT = backup_steps.ROOT
BEFORE, AFTER = "+15550001", "+15550002"


async def pending(fleet: Fleet) -> str:
    return (await fleet.ask("U0APPROVER", "/testusers", "requests")).all_text


@pytest.mark.parametrize("ending", ["killed", "stopped"])
async def test_sqlite_backup_is_restored(tmp_path, ending):
    needs("bash")
    if os.geteuid() != 0:
        lacks(ROOT_USER)
    back_up, restore = backup_steps.commands("SQLite")
    file = tmp_path / "gatehouse.db"
    async with running_fleet(f"sqlite:///{file}", 1) as fleet:
        await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {BEFORE}")
        backup_steps.run(back_up, tmp_path, fleet.environment)
        await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {AFTER}")
        os.chown(file, 61184, 61184)
        process = fleet.processes[0]
        await (process.kill() if ending == "killed" else process.stop())
        assert (tmp_path / "gatehouse.db-wal").exists() == (ending == "killed")
        backup_steps.run(restore, tmp_path, fleet.environment)
        restored = file.stat()
        assert (restored.st_uid, stat.S_IMODE(restored.st_mode)) == (61184, 0o600)
        await fleet.add()
        listed = await pending(fleet)
        assert (BEFORE in listed, AFTER in listed) == (True, False)
        await fleet.verify_audit()


@pytest.fixture
async def role_url() -> AsyncIterator[str]:
    """Create a database in the way that docs/install.md describes, and yield its URL."""
    name = f"gatehouse_{uuid.uuid4().hex[:12]}"
    admin = await connect(server_url())
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'word'")
    await admin.execute(f"CREATE DATABASE {name} OWNER {name} ENCODING 'UTF8' TEMPLATE template0")
    parts = urlsplit(server_url())
    place = parts.netloc.rpartition("@")[2]
    yield urlunsplit((parts.scheme, f"{name}:word@{place}", f"/{name}", parts.query, ""))
    for database in (name, f"{name}_replaced"):
        await admin.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
    await admin.execute(f"DROP ROLE {name}")
    await admin.close()


@pytest.mark.postgres
async def test_postgresql_backup_is_restored_after_a_kill(role_url, tmp_path, monkeypatch):
    # PostgreSQL's programs may be in a folder that isn't in PATH.
    programs = Path(needs("pg_dump", "psql", "bash")).parent
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    name = urlsplit(role_url).username or ""
    back_up, restore = backup_steps.commands("PostgreSQL")[0], backup_steps.restore_of(name)
    async with running_fleet(role_url, 2) as fleet:
        settings = {**fleet.environment, **postgres_environment(server_url())}
        await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {BEFORE}")
        backup_steps.run(back_up, tmp_path, settings)
        assert stat.S_IMODE((tmp_path / "gatehouse.dump").stat().st_mode) == 0o600
        await fleet.ask("U0OPERATOR", "/testusers", f"add welcome {AFTER}")
        with pytest.raises(AssertionError, match="is being accessed by other users"):
            backup_steps.run(restore, tmp_path, settings)
        for process in fleet.processes:
            await process.kill()
        await until_nobody_is_connected(name)
        backup_steps.run(restore, tmp_path, settings)
        await fleet.add()
        listed = await pending(fleet)
        assert (BEFORE in listed, AFTER in listed) == (True, False)
        await fleet.verify_audit()


async def until_nobody_is_connected(name: str) -> None:
    """Wait until nothing is connected to the database."""
    admin = await connect(server_url())
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
    while await (await admin.execute(query, (name,))).fetchone() != (0,):
        pass
    await admin.close()


def test_commands_for_systemd_name_the_units_folder() -> None:
    unit = Path(ROOT / "deploy/systemd/gatehouse.service").read_text("utf-8")
    folder = "/var/lib/gatehouse"
    assert f"WorkingDirectory={folder}\nStateDirectory=gatehouse\n" in unit
    section = " ".join(backup_steps.section().split())
    assert f"write the backup to `{folder}`" in section
    assert f"as root in `{folder}`" in section
    for action in ("stop", "start"):
        assert f"`sudo systemctl {action} gatehouse`" in section


def test_commands_for_compose_name_its_services_and_database() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    assert set(services) == {"gatehouse", "database"}
    variables = services["database"]["environment"]
    assert (variables["POSTGRES_USER"], variables["POSTGRES_DB"]) == ("gatehouse", "gatehouse")
    lines = [line for line in backup_steps.section().splitlines() if "docker compose" in line]
    used = [line for line in lines if "exec -T database" in line]
    assert all("--username gatehouse " in line for line in used)
    others = [line for line in lines if line not in used]
    assert others == [f"$ docker compose {action} gatehouse" for action in ("stop", "start")]


def test_commands_for_kubernetes_name_the_deployment() -> None:
    manifests = yaml.safe_load_all((ROOT / "deploy/kubernetes/gatehouse.yaml").read_text("utf-8"))
    [deployment] = [item for item in manifests if item["kind"] == "Deployment"]
    name, replicas = deployment["metadata"]["name"], deployment["spec"]["replicas"]
    lines = [line for line in backup_steps.section().splitlines() if "kubectl" in line]
    assert lines == [
        f"$ kubectl scale deployment/{name} --replicas={count}" for count in (0, replicas)
    ]
