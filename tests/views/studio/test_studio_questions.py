"""Questions of other programs: what comes in is checked, limits have names, and answers are the facts."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import LbmError, LimitExceeded, RequestError
from lbm.views.studio import questions
from lbm.views.studio.questions import QUESTIONS, answer
from lbm.views.studio.worker import reply_to, written

NIXON = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(sorted({each.name for one in QUESTIONS.values() for each in one.inputs}))


def asked(name, **said):
    return answer(name, QUESTIONS[name].read({"theory": NIXON, **said}))


@given(st.sampled_from(sorted(QUESTIONS)), json_values | st.dictionaries(names, json_values, max_size=4))
def test_whatever_comes_in_is_read_or_refused_in_one_line(name, said):
    refused: LbmError | None = None
    try:
        read = QUESTIONS[name].read(said)
    except LbmError as error:
        refused = error
    if refused is not None:
        assert refused.exit_status == 2
        assert "\n" not in str(refused)
        return
    assert set(read) == {*(each.name for each in QUESTIONS[name].inputs), "seconds"}
    assert 0 < read["seconds"] <= questions.MAX_SECONDS


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_what_a_question_takes_by_default_is_what_its_schema_allows(name):
    schema = QUESTIONS[name].schema(7.0)
    json.dumps(schema, allow_nan=False)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["seconds"]["maximum"] == 7.0
    for each in QUESTIONS[name].inputs:
        if each.otherwise is not None:
            assert each.read(each.otherwise) == schema["properties"][each.name]["default"]


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ({"theory": "a\n" * questions.MAX_THEORY}, "MAX_THEORY"),
        ({"query": "a" * (questions.MAX_FORMULA + 1)}, "MAX_FORMULA"),
        ({"given": "a" * (questions.MAX_FORMULA + 1)}, "MAX_FORMULA"),
        ({"seconds": 61}, "MAX_SECONDS"),
    ],
)
def test_what_is_too_much_is_refused_by_the_name_of_its_limit(said, limit):
    with pytest.raises(LimitExceeded, match=limit) as refused:
        QUESTIONS["ask"].read({"theory": "a", "query": "a", **said})
    assert refused.value.limit == limit


def test_worlds_and_rows_are_limited_by_name():
    with pytest.raises(LimitExceeded, match="MAX_WORLDS"):
        QUESTIONS["models"].read({"theory": "a", "limit": questions.MAX_WORLDS + 1})
    with pytest.raises(LimitExceeded, match="MAX_ROWS"):
        QUESTIONS["predict"].read({"model": "m", "rows": [{"a": 1}] * (questions.MAX_ROWS + 1)})
    with pytest.raises(LimitExceeded, match="MAX_COLUMNS"):
        QUESTIONS["predict"].read({"model": "m", "rows": [dict.fromkeys(map(str, range(1001)), 1)]})


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True, "1"])
def test_seconds_are_a_finite_number_above_0(seconds):
    with pytest.raises(LbmError):
        QUESTIONS["count"].read({"theory": "a", "seconds": seconds})


def test_a_name_that_is_misspelt_is_answered_with_the_nearest_one():
    with pytest.raises(RequestError, match="did you mean 'query'"):
        QUESTIONS["ask"].read({"theory": "a", "qurey": "a"})


def test_answers_are_the_facts_of_the_results():
    theory = lbm.Theory.parse(NIXON)
    assert asked("ask", query="p", given="n", why=True) == lbm.ask(theory, "p", given="n", why=True).facts()
    assert asked("marginals", given="n") == lbm.marginals(theory, given="n").facts()
    assert asked("best", top=2)["worlds"] == list(lbm.best(theory, top=2).facts()["worlds"])
    assert asked("models", limit=3)["models"] == list(lbm.models(theory, limit=3).facts()["models"])
    assert asked("count") == {"count": "16"}
    assert len(asked("sample", number=7)["worlds"]) == 7
    assert asked("entails", query="n -> r")["world"] is not None
    assert len(asked("compile")["units"]) == 7


@pytest.mark.parametrize("name", ["ask", "best", "marginals", "sample", "entails"])
def test_where_no_world_is_possible_the_clash_is_named(name):
    query = {"query": "a"} if name in ("ask", "entails") else {}
    status, body = reply_to(name, QUESTIONS[name].read({"theory": "a\nc\n~a | b\n~b", **query}))
    assert status == 1
    assert body["answer"] is False
    assert [each["line"] for each in body["clash"]] == [1, 3, 4]


def test_bad_input_is_one_line_with_the_place():
    status, body = reply_to("ask", QUESTIONS["ask"].read({"theory": "a\nb & -> c", "query": "a"}))
    assert status == 2
    assert body["error"].startswith("theory:2:5: expected a formula")
    assert (body["kind"], body["line"], body["column"]) == ("ParseError", 2, 5)
    status, body = reply_to("ask", QUESTIONS["ask"].read({"theory": " \n", "query": "a"}))
    assert (status, body["error"]) == (2, "theory: expected a theory, found an empty text")


def test_text_is_never_a_file_and_never_run():
    for text in ("/etc/passwd", "file:///etc/passwd", "__import__('os').system('true')", "$(id)"):
        status, body = reply_to("check", QUESTIONS["check"].read({"theory": text}))
        assert (status, body["kind"]) == (2, "ParseError")


def test_a_model_that_nobody_named_is_not_looked_for():
    status, body = reply_to(
        "predict", QUESTIONS["predict"].read({"model": "/etc/passwd", "rows": [{"a": 1}]})
    )
    assert status == 2
    assert "no model '/etc/passwd'; the server was given none" in body["error"]


def test_an_answer_too_long_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("lbm.views.studio.worker.MAX_ANSWER", 50)
    status, body = reply_to("models", QUESTIONS["models"].read({"theory": NIXON}))
    assert (status, body["limit"]) == (2, "MAX_ANSWER")


def test_what_nobody_foresaw_is_a_bug_in_one_line_and_memory_has_its_own(monkeypatch):
    def fails(_: object) -> None:
        raise error

    monkeypatch.setattr("lbm.views.studio.questions.answer", lambda *_: fails(_))
    error: Exception = RuntimeError("two\nlines")
    assert reply_to("ask", {})[1]["error"] == "a bug in lbm, please report it: RuntimeError: two lines"
    error = MemoryError()
    status, body = reply_to("ask", {})
    assert status == 3
    assert "LBM_MEMORY" in body["error"]


def test_plain_data_is_one_line_of_json():
    assert written({"a": iter([1, (2, 3)]), "b": "\n\u2028"}) == '{"a": [1, [2, 3]], "b": "\\n\\u2028"}'
    with pytest.raises(TypeError):
        written({"a": object()})
