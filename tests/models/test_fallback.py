"""The next model when one fails."""

import asyncio

import pytest
from tests.models.asking import ask, quick

from glassloop.core.errors import ConfigError, OutOfCredit
from glassloop.core.events import Switched
from glassloop.models.deadlines import Deadlines, Retries
from glassloop.models.endpoint import Endpoint
from glassloop.models.fallback import Fallback
from glassloop.testing.server import ChatServer, events, fails, says

HALF = events('{"choices": [{"index": 0, "delta": {"content": "It is"}}]}', end="reset", done=False)
ONCE = Retries(attempts=0)

SWITCHING = {
    "overloaded": fails(503, "overloaded"),
    "throttled": fails(429, "slow down"),
    "told to wait too long": fails(429, "slow down", {"retry-after": "3600"}),
    "out of credit": fails(402, "Insufficient Balance"),
    "hung up": HALF,
    "stalled": events(end="stall", done=False),
}


def fall(first, second, **options):
    async def story():
        async with ChatServer([first]) as bad, ChatServer([second]) as good:
            model = Fallback(
                [quick(bad, name="first", retries=ONCE, **options), quick(good, name="second", retries=ONCE)]
            )
            heard = await ask(model)
            await model.close()
            return heard, len(good.requests)

    return asyncio.run(story())


@pytest.mark.parametrize("name", SWITCHING)
def test_another_model_takes_over_where_that_may_help(name):
    heard, asked = fall(SWITCHING[name], says("fine"), deadlines=Deadlines(first_byte=0.1, silence=0.1))
    assert heard.reply.text == heard.shown == "fine"
    [switched] = heard.of(Switched)
    assert (switched.from_model, switched.to_model) == ("first", "second")
    assert switched.discard == (name == "hung up")
    assert asked == 1


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_must_be_mended_passes(status):
    heard, asked = fall(fails(status, "no"), says("never"))
    assert heard.error.status == status
    assert asked == 0


def test_the_last_models_error_is_raised_as_it_is():
    heard, _ = fall(fails(503, "overloaded"), fails(402, "Insufficient Balance"))
    assert isinstance(heard.error, OutOfCredit)


def test_each_question_starts_with_the_first_again():
    async def story():
        async with (
            ChatServer([fails(503, "busy"), says("back")]) as first,
            ChatServer([says("stood in")]) as second,
        ):
            model = Fallback([quick(first, retries=ONCE), quick(second)])
            texts = [(await ask(model)).reply.text for _ in range(2)]
            await model.close()
            return texts

    assert asyncio.run(story()) == ["stood in", "back"]


def test_a_fallback_needs_a_model_and_is_named_after_all():
    with pytest.raises(ConfigError):
        Fallback([])
    models = [Endpoint("http://localhost/v1", "m", name=name) for name in ("a", "b")]
    assert Fallback(models).name == "a | b"
