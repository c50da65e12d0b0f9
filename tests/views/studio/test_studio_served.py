"""``lbm studio`` as it is started: a real server on loopback, asked as pages and programs would."""

import json
import os
import signal
import subprocess
import sys
from http.client import HTTPConnection

import pytest

pytest.importorskip("nicegui", reason="needs the extra studio")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def server():
    """The process, and the host and port that it printed."""
    command = [sys.executable, "-m", "lbm", "studio", "--no-browser", "--port", "18080"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    hidden = ("PYTEST_CURRENT_TEST", "NICEGUI_USER_SIMULATION")  # NiceGUI would think that it is tested
    environment = {name: value for name, value in environment.items() if name not in hidden}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("lbm studio: http://127.0.0.1:")
            yield process, line.split()[2].removeprefix("http://")
        finally:
            process.kill()


def ask(server, path, method="GET", body=None, **headers):
    connection = HTTPConnection(server[1], timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, b"" if answer.status == 101 else answer.read()
    finally:
        connection.close()


def test_it_listens_at_this_machine_only_and_answers(server):
    said = json.dumps({"theory": "a | b", "query": "a"})
    status, body = ask(server, "/api/ask", "POST", said, **{"Content-Type": "application/json"})
    assert (status, json.loads(body)["status"]) == (200, "undecided")
    assert json.loads(ask(server, "/api/health")[1])["status"] == "ok"
    assert ask(server, "/docs")[1].find(b"swagger") == -1  # FastAPI's own page loads from outside


def test_the_page_names_nothing_outside(server):
    status, body = ask(server, "/")
    text = body.decode()
    assert status == 200
    assert "lbm studio" in text
    for part in ('src="', 'href="', "from '", 'from "', '": "'):
        for rest in text.split(part)[1:]:
            assert not rest.startswith(("http:", "https:", "//")), rest[:80]


def test_its_socket_is_open_to_its_own_page_only(server):
    own = f"http://{server[1]}"
    assert ask(server, SOCKET, **UPGRADE, Origin=own)[0] == 101
    assert ask(server, SOCKET, **UPGRADE, Origin="http://evil.example")[0] == 403
    assert ask(server, SOCKET, **UPGRADE)[0] == 403
    assert ask(server, SOCKET, **UPGRADE, Origin=own, Host="evil.example:18080")[0] == 403


def test_files_beside_its_own_are_out_of_reach(server):
    for path in ("/_nicegui/../../etc/passwd", "/_nicegui/%2e%2e/%2e%2e/etc/passwd", "/%2fetc/passwd"):
        status, body = ask(server, path)
        assert b"root:" not in body
        assert status in (400, 404, 200)


def test_it_says_the_next_port_where_one_is_busy_and_ends_at_an_interrupt(server):
    process, address = server
    assert int(address.rpartition(":")[2]) >= 18080
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
