"""The served description is valid OpenAPI, and says exactly what the router does."""

import re

from openapi_spec_validator import validate

from jupyter_dist.server.http.jupyter import JUPYTER
from jupyter_dist.server.http.openapi import VERBS, build_openapi, operations_of
from jupyter_dist.server.http.routes import PREFIX, ROUTES, tornado_routes


async def test_it_is_served_and_valid(jp_serverapp, ask, jp_base_url):
    document = await ask("openapi.json")
    validate(document)
    assert document["servers"] == [{"url": f"{jp_base_url}jupyter-dist/api"}]


def documented():
    paths = build_openapi(ROUTES, "/", "1")["paths"]
    return {(path, verb) for path, item in paths.items() for verb in item if verb in VERBS}


def test_every_route_and_verb_is_documented_and_the_other_way_round():
    routed = set()
    for (pattern, handler, *_), route in zip(tornado_routes(JUPYTER), ROUTES, strict=False):
        sample = re.sub(r"\{rank\}", "0", f"/{PREFIX}/{route.path}")
        assert re.fullmatch(pattern, re.sub(r"\{\w+\}", "x", sample)), pattern
        assert issubclass(handler, route.handler)
        for verb in VERBS:
            own = vars(route.handler).get(verb)
            assert (own is not None) == (verb in operations_of(handler)), (route.path, verb)
            if own is not None:
                routed.add((f"/{route.path}", verb))
    assert routed == documented()
