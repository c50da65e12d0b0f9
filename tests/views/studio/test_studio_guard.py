"""The guard and the JSON interface behind it, asked as a hostile page would ask, without a browser."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import NoAnswer
from lbm.views.studio.guard import COOKIE, HEADERS, Doorkeeper, hosts_of
from lbm.views.studio.questions import QUESTIONS
from lbm.views.studio.workers import Reply, Workers

HOST = "127.0.0.1:8080"
OWN = {"host": HOST}
TOKEN = "a-token-of-some-length"


class Behind:
    """An application that answers "inside", and remembers what reached it."""

    def __init__(self):
        self.paths, self.bodies = [], []

    async def __call__(self, scope, receive, send):
        self.paths.append(scope["path"])
        if scope["type"] == "websocket":
            assert (await receive())["type"] == "websocket.connect"
            await send({"type": "websocket.accept"})
            while (message := await receive())["type"] == "websocket.receive":
                self.bodies.append(message)
            self.bodies.append(message)
            return
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.bodies.append(None)
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"no")]})
        await send({"type": "http.response.body", "body": b"inside"})


async def call(app, path="/", headers=OWN, *, method="GET", query="", chunks=(b"",), kind="http"):
    """Return status, headers and body of an answer; of a socket that was accepted, 101."""
    raw = path.encode("latin-1")
    given = headers.items() if isinstance(headers, dict) else headers
    scope = {
        "type": kind,
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "ws" if kind == "websocket" else "http",
        "path": raw.decode("utf-8", "replace"),
        "raw_path": raw,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
        "client": ("127.0.0.1", 1234),
        "server": ("127.0.0.1", 8080),
    }
    if kind == "websocket":
        scope.pop("method")
        coming = [{"type": "websocket.connect"}, *({"type": "websocket.receive", "bytes": c} for c in chunks)]
        coming.append({"type": "websocket.disconnect", "code": 1000})
    else:
        coming = [{"type": "http.request", "body": c, "more_body": True} for c in chunks]
        coming[-1]["more_body"] = False
    said = []

    async def receive():
        if coming:
            return coming.pop(0)
        await asyncio.sleep(3600)

    async def send(message):
        said.append(message)

    await app(scope, receive, send)
    if kind == "websocket":
        return (101 if said[0]["type"] == "websocket.accept" else 403), {}, b""
    found = {name.decode(): value.decode() for name, value in said[0]["headers"]}
    return said[0]["status"], found, b"".join(message.get("body", b"") for message in said[1:])


def asked(*args, token=None, most=1000, **options):
    behind = Behind()
    guard = Doorkeeper(behind, hosts_of("127.0.0.1", 8080), token=token, most=most)
    return asyncio.run(call(guard, *args, **options)), behind


def test_our_own_page_and_programs_on_this_machine_are_let_through():
    for headers in (
        OWN,
        {"host": "localhost:8080"},
        {**OWN, "origin": f"http://{HOST}"},
        {**OWN, "sec-fetch-site": "same-origin"},
        {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ):
        (status, said, body), behind = asked("/api", headers)
        assert (status, body, behind.paths) == (200, b"inside", ["/api"])
        assert {name: said[name] for name in HEADERS} == HEADERS


HOSTILE = {
    "a foreign host": {"host": "evil.example:8080"},
    "a host that only begins like ours": {"host": f"{HOST}.evil.example"},
    "another port": {"host": "127.0.0.1:8081"},
    "no host": {},
    "two hosts": [("host", HOST), ("host", "evil.example")],
    "a foreign origin": {**OWN, "origin": "http://evil.example"},
    "an origin of nobody": {**OWN, "origin": "null"},
    "an origin on another port": {**OWN, "origin": "http://127.0.0.1:9999"},
    "another scheme": {**OWN, "origin": f"https://{HOST}"},
    "two origins": [("host", HOST), ("origin", f"http://{HOST}"), ("origin", "http://evil.example")],
    "a picture on another page": {**OWN, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    "a frame on another page": {
        **OWN,
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "iframe",
    },
}


@pytest.mark.parametrize("headers", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_other_hosts_and_pages_get_403_and_reach_nothing(headers, kind):
    (status, _, _), behind = asked("/_nicegui_ws/socket.io/", headers, kind=kind)
    assert status == 403
    assert behind.paths == []


def test_a_socket_says_from_which_page_it_is_opened():
    assert asked("/ws", OWN, kind="websocket")[0][0] == 403
    (status, _, _), behind = asked(
        "/ws", {**OWN, "origin": f"http://{HOST}"}, kind="websocket", chunks=[b"x"]
    )
    assert (status, len(behind.bodies)) == (101, 2)


def test_a_message_on_a_socket_that_is_too_long_ends_it():
    (_, _, _), behind = asked(
        "/ws", {**OWN, "origin": f"http://{HOST}"}, kind="websocket", chunks=[b"x" * (5 << 20), b"y"]
    )
    assert [message["type"] for message in behind.bodies] == ["websocket.disconnect"]


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/static/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/%252e%252e/secret",
        "/a/./b",
        "/a\\..\\b",
        "/a%5c..%5cb",
        "/a%00.png",
        "/a%0d%0aset-cookie: x",
        "http://evil.example/",
        "*",
    ],
)
def test_tricks_in_a_path_are_refused(path):
    (status, _, _), behind = asked(path)
    assert (status, behind.paths) == (400, [])


@given(st.lists(st.integers(0, 900), min_size=1, max_size=5))
def test_a_body_passes_whole_or_is_refused_while_it_comes(sizes):
    (status, _, _), behind = asked("/api/ask", method="POST", chunks=[b"x" * size for size in sizes])
    if sum(sizes) <= 1000:
        assert status == 200
        assert behind.bodies == [b"x" * sum(sizes)]
    else:
        assert status == 413
        assert behind.bodies == [None]


@pytest.mark.parametrize("length", ["1001", "9" * 5000, "-1", "x"])
def test_a_body_that_is_said_to_be_too_long_is_not_read(length):
    (status, _, _), behind = asked("/api/ask", {**OWN, "content-length": length}, method="POST")
    assert (status, behind.paths) == (413, [])


def test_headers_are_bounded_too():
    assert asked("/", {**OWN, "x": "y" * 40_000})[0][0] == 431
    assert asked("/", query="q=" + "y" * 40_000)[0][0] == 431


def test_a_token_is_exchanged_for_a_strict_cookie_and_taken_out_of_the_address():
    async def visit():
        behind = Behind()
        guard = Doorkeeper(behind, hosts_of("127.0.0.1", 8080), token=TOKEN)
        status, said, body = await call(guard, query=f"theory=a&token={TOKEN}")
        assert status == 200
        assert behind.paths == []  # the page is not shown under that address
        assert b"location.replace" in body
        assert TOKEN.encode() not in body
        cookie, _, rest = said["set-cookie"].partition(";")
        assert rest == " Path=/; HttpOnly; SameSite=Strict"
        assert TOKEN not in cookie
        page = {**OWN, "cookie": cookie}
        assert (await call(guard, headers=page))[2] == b"inside"
        assert (await call(guard, headers={**page, "origin": "http://evil.example"}))[0] == 403
        socket = {**page, "origin": f"http://{HOST}"}
        assert (await call(guard, headers=socket, kind="websocket"))[0] == 101
        assert (await call(guard, headers={**OWN, "authorization": f"Bearer {TOKEN}"}))[2] == b"inside"

    asyncio.run(visit())


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({}, "token="),
        ({}, "token=wrong"),
        ({}, f"token={TOKEN}&token=wrong"),
        ({"cookie": f"{COOKIE}={TOKEN}"}, ""),
        ({"cookie": f"{COOKIE}="}, ""),
        ({"cookie": '"; \x01=;;'}, ""),
        ({"authorization": "Bearer wrong"}, ""),
        ({"authorization": f"Basic {TOKEN}"}, ""),
        ({"authorization": "Bearer \xff"}, ""),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_without_the_token_nothing_is_reached(headers, query, kind):
    origin = {"origin": f"http://{HOST}"}
    (status, _, body), behind = asked("/", {**OWN, **origin, **headers}, query=query, token=TOKEN, kind=kind)
    assert (status, behind.paths) == (403, [])
    assert TOKEN.encode() not in body


def test_a_token_changes_nothing_by_post():
    assert asked("/", query=f"token={TOKEN}", method="POST", token=TOKEN)[0][0] == 403


# --- the interface behind it -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def talk():
    """Ask the interface behind its guard, with a worker of its own."""
    pytest.importorskip("starlette", reason="needs the extra studio")
    from starlette.applications import Starlette

    from lbm.views.studio.interface import routes

    loop = asyncio.new_event_loop()
    pool = Workers(1, most=30)
    loop.run_until_complete(pool.__aenter__())
    guard = Doorkeeper(Starlette(routes=routes(pool)), hosts_of("127.0.0.1", 8080))

    def ask(path, said=None, kind="application/json", data=None):
        if said is None and data is None:
            return loop.run_until_complete(call(guard, path))
        headers = {**OWN, "content-type": kind}
        body = json.dumps(said).encode() if data is None else data
        return loop.run_until_complete(call(guard, path, headers, method="POST", chunks=[body]))

    yield ask
    loop.run_until_complete(pool.__aexit__())
    loop.close()


def test_a_question_is_answered_by_its_facts(talk):
    theory = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
    status, said, body = talk("/api/ask", {"theory": theory, "query": "p", "given": "n"})
    assert (status, said["content-type"], said["cache-control"]) == (200, "application/json", "no-store")
    assert json.loads(body) == lbm.ask(lbm.Theory.parse(theory), "p", given="n").facts()
    status, _, body = talk("/api/ask", {"theory": "a\n~a", "query": "a"})
    assert (status, json.loads(body)["answer"]) == (200, False)


@pytest.mark.parametrize(
    ("path", "data", "status", "line"),
    [
        ("/api/ask", b'{"theory": "a &", "query": "a"}', 400, "theory:1:4: expected a formula"),
        ("/api/ask", b"{", 400, "expected JSON, line 1, column 2"),
        ("/api/ask", b"\xff", 400, "expected JSON in UTF-8"),
        ("/api/ask", b"[" * 100_000, 400, "expected JSON that is not so deep"),
        ("/api/ask", b'{"seconds": Infinity}', 400, "expected JSON, got the constant Infinity"),
        ("/api/ask", b'{"seconds": ' + b"9" * 5000 + b"}", 400, "expected JSON in UTF-8: Exceeds"),
        ("/api/ask", b"[]", 400, "ask: expected an object of named values, got a list"),
        ("/api/asc", b"{}", 404, "no question 'asc'; did you mean 'ask'?"),
        (
            "/api/count",
            b'{"theory": "a", "seconds": 31}',
            400,
            "seconds: expected at most 30 (limit MAX_SECONDS)",
        ),
    ],
)
def test_bad_input_is_an_error_of_one_line(talk, path, data, status, line):
    found, _, body = talk(path, data=data)
    assert found == status
    assert json.loads(body)["error"].startswith(line)


def test_a_form_of_another_page_is_no_json(talk):
    status, _, body = talk("/api/ask", kind="text/plain", data=b"{}")
    assert (status, json.loads(body)["error"]) == (415, "expected Content-Type: application/json")


def test_names_that_are_script_come_back_as_json_and_never_as_a_page(talk):
    name = "<script>alert(1)</script>"
    status, said, body = talk("/api/ask", {"theory": f"'{name}'", "query": f"'{name}'"})
    assert (status, said["content-type"], said["x-content-type-options"]) == (
        200,
        "application/json",
        "nosniff",
    )
    assert json.loads(body)["query"] == f"'{name}'"
    _, said, _ = talk("/api/<b>x", {})
    assert said["content-type"] == "application/json"


def test_health_and_the_description_say_what_there_is(talk):
    health = json.loads(talk("/api/health")[2])
    assert (health["status"], health["version"], health["models"]) == ("ok", lbm.__version__, [])
    described = json.loads(talk("/openapi.json")[2])
    assert set(described["paths"]) == {"/api/health", *(f"/api/{name}" for name in QUESTIONS)}
    schema = described["paths"]["/api/ask"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["theory", "query"]


def test_the_page_of_the_interface_names_every_question_and_loads_nothing(talk):
    status, said, body = talk("/api")
    text = body.decode()
    assert (status, said["content-type"]) == (200, "text/html; charset=utf-8")
    assert all(f"POST /api/{name}</h2>" in text for name in QUESTIONS)
    assert "<script" not in text
    assert "src=" not in text
    assert "//" not in text.replace("http://127.0.0.1:8080/api/ask", "")


def test_where_whoever_asked_goes_away_the_question_is_taken_back():
    pytest.importorskip("starlette", reason="needs the extra studio")
    from lbm.views.studio.interface import _unless_gone

    class Slow:
        taken_back = False

        async def ask(self, *_):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.taken_back = True
                raise

    class Gone:
        async def receive(self):
            await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}

    pool = Slow()
    reply = asyncio.run(_unless_gone(Gone(), pool, "ask", {}))
    assert pool.taken_back
    assert reply.status == Reply.of(NoAnswer("x")).status == 3
