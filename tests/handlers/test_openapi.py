"""The served description is valid OpenAPI, and says exactly what the router does."""

import re
from pathlib import Path

from openapi_spec_validator import validate

from jupyter_dist.server.http.openapi import VERBS, build_openapi, operations_of
from jupyter_dist.server.http.routes import PREFIX, ROUTES, tornado_routes

API_PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


async def test_it_is_served_and_valid(jp_serverapp, ask, jp_base_url):
    document = await ask("openapi.json")
    validate(document)
    assert document["servers"] == [{"url": f"{jp_base_url}jupyter-dist/api"}]


def documented():
    paths = build_openapi(ROUTES, "/", "1")["paths"]
    return {(path, verb) for path, item in paths.items() for verb in item if verb in VERBS}


def test_every_route_and_verb_is_documented_and_the_other_way_round():
    routed = set()
    for (pattern, handler, *_), route in zip(tornado_routes(), ROUTES, strict=False):
        sample = re.sub(r"\{rank\}", "0", f"/{PREFIX}/{route.path}")
        assert re.fullmatch(pattern, re.sub(r"\{\w+\}", "x", sample)), pattern
        assert handler is route.handler
        for verb in VERBS:
            own = vars(handler).get(verb)
            assert (own is not None) == (verb in operations_of(handler)), (route.path, verb)
            if own is not None:
                routed.add((f"/{route.path}", verb))
    assert routed == documented()


def test_the_page_about_the_api_names_the_same_routes():
    rows = re.findall(r"^\| `(GET|POST|DELETE) /([^`]*)` \| *(\w*)", API_PAGE, re.M)
    operations = {
        (verb, route.path): operation.action
        for route in ROUTES
        for verb, operation in operations_of(route.handler).items()
    }
    assert {(verb.lower(), path): action or "read" for verb, path, action in rows} == operations


def test_the_page_about_the_api_names_the_same_fields():
    document = build_openapi(ROUTES, "/", "1")
    for path, words in (
        ("/groups", "Body of `POST /groups`"),
        ("/groups/{group}/executions", "Body of `POST .../executions`"),
    ):
        (paragraph,) = (part for part in API_PAGE.split("\n\n") if part.startswith(words))
        schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        for field in schema["properties"]:
            assert f"`{field}`" in paragraph, field
