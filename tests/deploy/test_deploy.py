"""Test that each file in `deploy/` is valid for the program that reads it."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from bot.metrics import Metrics
from bot.settings import EXAMPLES
from bot.settings.files import CONFIG
from tests.support.needs import needs

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SELF_SIGNED = ROOT / "tests/support/self_signed.pem"


def run(*command: str | Path, expect: int = 0) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_takes_the_unit(tmp_path):
    analyze = needs("systemd-analyze")
    text = (DEPLOY / "systemd/gatehouse.service").read_text(encoding="utf-8")
    # The unit's program is not installed here, and systemd verifies the rest.
    unit = tmp_path / "gatehouse.service"
    unit.write_text(text.replace("/opt/gatehouse/bin/gatehouse", "/bin/true"), encoding="utf-8")
    assert run(analyze, "verify", "--man=no", unit).strip() == ""


def test_unit_is_started_again_after_every_signal():
    text = (DEPLOY / "systemd/gatehouse.service").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^Restart=(.*)$", text) == ["always"]


def test_unit_is_hardened():
    said = run(
        needs("systemd-analyze"),
        *("security", "--no-pager", "--offline=true", "--threshold=25"),
        DEPLOY / "systemd/gatehouse.service",
    )
    exposure = float(re.findall(r"exposure level for \S+: ([0-9.]+)", said)[0])
    assert exposure <= 2.5


def test_unit_leaves_readable_what_process_metrics_are_read_from():
    text = (DEPLOY / "systemd/gatehouse.service").read_text(encoding="utf-8")
    # With `pid`, /proc/stat is hidden.
    assert re.findall(r"(?m)^ProcSubset=(.*)$", text) == ["all"]


def test_caddy_takes_its_file():
    caddyfile = DEPLOY / "caddy/Caddyfile"
    said = run(needs("caddy"), "validate", "--adapter", "caddyfile", "--config", caddyfile)
    assert "Valid configuration" in said


def test_nginx_takes_its_file(tmp_path):
    nginx = needs("nginx")
    text = (DEPLOY / "nginx/gatehouse.conf").read_text(encoding="utf-8")
    certificate = tmp_path / "bot.crt"
    shutil.copy(SELF_SIGNED, certificate)
    text = re.sub(r"/etc/nginx/tls/\S+\.(?:crt|key)", str(certificate), text)
    whole = tmp_path / "nginx.conf"
    places = f"pid {tmp_path}/nginx.pid; error_log stderr;"
    whole.write_text(f"{places} events {{}} http {{ access_log off; {text} }}", encoding="utf-8")
    ssl.create_default_context().load_cert_chain(certificate)
    assert "test is successful" in run(nginx, "-t", "-p", tmp_path, "-c", whole)


@pytest.mark.parametrize("name", ["caddy/Caddyfile", "nginx/gatehouse.conf"])
def test_proxies_pass_on_slacks_path_alone(name):
    text = (DEPLOY / name).read_text(encoding="utf-8")
    passed_on = re.findall(r"(?m)^\s*(?:handle|location(?: =)?) (/\S+) \{", text)
    assert [path for path in passed_on if path != "/"] == ["/slack/events"]
    assert "404" in text


def manifests() -> list[dict]:
    text = (DEPLOY / "kubernetes/gatehouse.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


def test_kubernetes_takes_the_manifests():
    for manifest in manifests():
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(
                {**manifest, "spec": {"unknown": 1}},
                kubernetes_validate.latest_version(),
                strict=True,
            )


def test_kubernetes_has_two_replicas_probes_and_no_rights():
    by_kind = {manifest["kind"]: manifest["spec"] for manifest in manifests()}
    assert set(by_kind) == {
        *("Deployment", "Service", "PodDisruptionBudget", "Ingress", "NetworkPolicy")
    }
    assert by_kind["Deployment"]["replicas"] == 2
    pod = by_kind["Deployment"]["template"]["spec"]
    # Otherwise, a Service named "gateway" sets GATEWAY_PORT.
    assert pod["enableServiceLinks"] is False
    settings, *folders = pod["volumes"]
    assert all("sizeLimit" in volume["emptyDir"] for volume in folders)
    (container,) = pod["containers"]
    (file,) = (one for one in container["volumeMounts"] if one["name"] == settings["name"])
    given = {item["name"]: item.get("value") for item in container["env"]}
    # Every user could write to the folder of a config map, which Gatehouse refuses.
    assert (file["mountPath"], file["subPath"]) == (given[CONFIG], "gatehouse.toml")
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    paths = [path["path"] for path in by_kind["Ingress"]["rules"][0]["http"]["paths"]]
    assert paths == ["/slack/events"]


def test_dashboard_asks_for_metrics_that_are_there():
    dashboard = json.loads((DEPLOY / "grafana/gatehouse.json").read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:gatehouse|process)_[a-z_]+", target["expr"])
    }
    told = set()
    for metric in Metrics().registry.collect():
        suffixes = {"counter": ["_total"], "histogram": ["_bucket"]}.get(metric.type, [""])
        told |= {metric.name + suffix for suffix in suffixes}
    assert asked <= told
    counted = set(re.findall(r'what=\\"(\w[^"\\]*)', json.dumps(dashboard)))
    assert counted == {"open_incidents", "pending_requests"}


def test_compose_file_names_settings_that_are_there():
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    named = compose["services"]["gatehouse"]["environment"]
    assert set(named) <= {*EXAMPLES, CONFIG}
    missing = [value for value in named.values() if ":?" in value]
    assert len(missing) == 2
    _, file = compose["services"]["gatehouse"]["volumes"]
    assert (file["target"], file["read_only"]) == (named[CONFIG], True)
    assert compose["services"]["gatehouse"]["read_only"] is True
    # The password is also part of an address, so it must need no escaping.
    assert (
        "openssl rand -hex" in compose["services"]["database"]["environment"]["POSTGRES_PASSWORD"]
    )


def test_image_holds_nothing_of_the_checkout_but_the_program():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", dockerfile)
    assert {name for names in copied for name in names.split()} <= {
        rule.removeprefix("!") for rule in rules if rule.startswith("!")
    }
    assert "USER 65532" in dockerfile
    installed = re.findall(r"pip install (.+?)(?: \\)?$", dockerfile, re.MULTILINE)
    assert [line for line in installed if "--require-hashes" not in line] == [
        "--no-cache-dir --no-deps --no-build-isolation ."
    ]


@pytest.mark.parametrize("host", [None, "127.0.0.1", "127.0.0.2", "0.0.0.0", "*", "::", "::1"])
def test_health_check_of_the_image_asks_the_bots_address(host):
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    [words] = re.findall(r"^    CMD (\[.*\])$", dockerfile, re.MULTILINE)
    # What the image sets is used, and not a settings file.
    image = dict(re.findall(r"^ +(HOST|PORT)=(\S+)", dockerfile, re.MULTILINE))
    assert image == {"HOST": "0.0.0.0", "PORT": "3000"}
    family = socket.AF_INET6 if host and ":" in host else socket.AF_INET
    address = image["HOST"] if host in {None, "*"} else host
    with socket.create_server((address, 0), family=family) as server:
        environment = {"PORT": str(server.getsockname()[1]), "HOST": host or image["HOST"]}
        asked = subprocess.Popen([sys.executable, *json.loads(words)[1:]], env=environment)
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100).startswith(b"GET /healthz ")
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        assert asked.wait(30) == 0


@pytest.mark.parametrize(
    ("name", "is_ignored"),
    [
        ("gatehouse.toml", True),
        ("gatehouse.toml.bak", True),
        ("production.env", True),
        (".env", True),
        ("gatehouse.example.toml", False),
    ],
)
def test_file_of_settings_is_never_committed(name, is_ignored, tmp_path):
    # A new checkout, because the tested folder may not be a checkout or may have its own excludes.
    git = (needs("git"), "-C", tmp_path)
    run(*git, "init", "--quiet", "--template=")
    shutil.copy(ROOT / ".gitignore", tmp_path)
    (tmp_path / name).touch()
    run(*git, "-c", "core.excludesFile=", "add", "--all")
    committed = run(*git, "ls-files").split()
    assert committed == sorted([".gitignore", *([] if is_ignored else [name])])


def test_make_run_takes_a_port_and_installs_only_the_bot(tmp_path):
    dry = (needs("make"), "--dry-run", "--directory", ROOT, f"VENV={tmp_path}")
    said = run(*dry, "run", "PORT=8800")
    assert "-m sandbox --port 8800" in said
    assert re.findall(r"-r (\S+)", said) == ["requirements-build.txt", "requirements.txt"]
    assert "-r requirements-dev.txt" in run(*dry, "setup")
    # The second time, nothing is left to do.
    (tmp_path / ".run-stamp").touch()
    assert "-r " not in run(*dry, "run")
