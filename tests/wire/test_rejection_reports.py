"""Refusals that others reported, each with the request that was refused: the right thing is done about every one."""

import json

import pytest
from tests.wire.reports import REPORTS, WORDINGS, fulfils, outcome


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: f"{report['id']} {report['provider']}")
def test_a_reported_refusal_is_dealt_with(report):
    done, right = outcome(report)
    assert right, f"{done}, where {report['expect']} was due"


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording["id"])
def test_other_words_for_the_same_are_understood(wording):
    done, right = outcome(wording)
    assert right, f"{done}, where {wording['expect']} was due for {wording['body']}"


def test_every_report_names_its_source_and_is_counted_once():
    assert all(report["source"].startswith("https://") for report in REPORTS)
    assert len({report["id"] for report in REPORTS}) == len(REPORTS) >= 100


def test_a_wish_can_fail():
    assert not fulfils({"messages": [], "tools": [{"x": 1}]}, {"absent": ["tools.*.x"]})
    assert not fulfils({"messages": []}, {"present": ["tools"]})


def _gateway(text):
    upstream = json.dumps({"error": {"message": text}})
    return {"error": {"message": f"litellm.BadRequestError: XException - {upstream}. Received Model Group=m"}}


SHAPES = {
    "error text": lambda text: {"error": text},
    "message": lambda text: {"message": text, "type": "invalid_request_error"},
    "detail": lambda text: {"detail": {"error": {"message": text}}},
    "list": lambda text: [{"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}],
    "errors": lambda text: {"errors": [{"message": text}], "success": False},
    "JSON inside a text": _gateway,
    "problem details": lambda text: {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": text,
    },
    "code and msg": lambda text: {"code": 20015, "msg": text, "data": None},
    "request id after it": lambda text: {
        "error": {"message": f"{text} (request id: 20260101)", "code": None}
    },
    "words before it": lambda text: {
        "base_resp": {"status_code": 2013, "status_msg": f"invalid params, {text}"}
    },
    "a Java server": lambda text: {"status": 400, "error": "Bad Request", "message": text, "path": "/v1"},
}


def _message_of(report):
    """The text of a refusal that says all it says in one message, else None."""
    try:
        error = json.loads(report["body"])["error"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(error, dict) or report["status"] not in (400, 422):
        return None
    return (
        error["message"]
        if not any(value for key, value in error.items() if key not in ("message", "type"))
        else None
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shape_of_a_body_does_not_change_what_its_words_mean(shape):
    spoken = [(report, text) for report in (*REPORTS, *WORDINGS[::3]) if (text := _message_of(report))]
    reshaped = [{**report, "body": json.dumps(SHAPES[shape](text))} for report, text in spoken]
    assert len(reshaped) > 50
    assert [each["body"] for each in reshaped if not outcome(each)[1]] == []
