"""A profile for tests alone: what the conformance suite calls for, on the stack that serves every dialect.

    tools that a dialect can have    a table of operations like any other: texts, failure, progress, sampling, schemas
    what no dialect has              images, prompts, elicitation, logging, subscriptions: handlers on the same server

So requests pass the same layers, sessions and threads as those of a dialect. Nothing of this is shipped.
"""

from __future__ import annotations

import warnings
from time import sleep
from typing import Any

import anyio
import mcp.types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY
from starlette.applications import Starlette

from scrubjay.dialects.base import Dialect, Resource, Resources, object_schema
from scrubjay.errors import InvalidInput, NotFound
from scrubjay.servers.http.app import build_app
from scrubjay.values.store import Prompt

ANY = {"type": "object"}
PAUSE = 0.05  # seconds between two notes of one call, as the suite asks
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def everything(jay) -> Starlette:
    """The site that the suite is run against."""
    app = build_app(jay, [profile()])
    [route] = [one for one in app.routes if one.path == "/mcp"]
    Beyond(route.endpoint._app._app.session_manager.app)
    return app


# --- what a dialect can have -----------------------------------------------------------------------------------------


def profile() -> Dialect:
    dialect = Dialect(
        name="conformance",
        title="For the conformance suite",
        server_name="scrubjay",
        instructions="For tests only.",
        error_body=lambda error, _: {"error": error.message},
        error_text=lambda error, _: error.message,
        resources=Resources(
            templates=(Resource("test://template/{id}/data", "Template", "Data of an id", "application/json"),),
            listed=lambda _: [Resource("test://static-text", "Text", "A fixed text", "text/plain")],
            read=read,
            complete=lambda _engine, _name, value, _known: [
                word for word in ("paris", "park") if word.startswith(value)
            ],
        ),
    )

    def tool(name: str, takes: dict[str, Any] | None = None, **options: Any):
        return dialect.reads(
            name,
            name=name,
            takes=takes or object_schema({}),
            gives=ANY,
            says=lambda body: body["text"],
            **options,
        )

    @tool("test_simple_text")
    def simple_text(_engine, _args):
        """Says a text."""
        return {"text": "This is a simple text response for testing."}

    @tool("test_error_handling")
    def error_handling(_engine, _args):
        """Fails."""
        raise InvalidInput("This tool intentionally returns an error for testing")

    @tool("test_tool_with_progress")
    def progress(engine, _args):
        """Says how far it is."""
        for done in (0, 50, 100):
            engine.progress(done, 100, "")
            sleep(PAUSE)
        return {"text": "Done."}

    @tool("test_sampling", object_schema({"prompt": {"type": "string"}}, required=["prompt"]), asks=True)
    def sampling(engine, args):
        """Asks the client's model."""
        return {"text": f"LLM response: {asked(engine, args['prompt'])}"}

    @tool("test_input_required_result_sampling", asks=True)
    def capital(engine, _args):
        """Asks the client's model for a capital."""
        return {"text": asked(engine, "What is the capital of France?")}

    @tool("test_headers", object_schema({"region": {"type": "string", "x-mcp-header": "Region"}}))
    def headers(_engine, args):
        """Takes an argument that is also sent as a header."""
        return {"text": args.get("region", "")}

    @tool("json_schema_2020_12_tool", SCHEMA)
    def schema(_engine, _args):
        """Has a schema with much in it."""
        return {"text": "ok"}

    return dialect


def asked(engine, text: str) -> str:
    if engine.client_model is None:
        raise InvalidInput("The client offers no model.")
    return engine.client_model(Prompt(system="", text=text, max_tokens=100))


def read(_engine, uri: str) -> tuple[str, str]:
    if uri == "test://static-text":
        return "text/plain", "This is the content of the static text resource."
    id = uri.removeprefix("test://template/").removesuffix("/data")
    if uri != f"test://template/{id}/data":
        raise NotFound("There is no such resource.")
    return "application/json", f'{{"id": "{id}", "templateTest": true, "data": "Data for ID: {id}"}}'


# --- what no dialect has ---------------------------------------------------------------------------------------------


class Beyond:
    """Adds to a server what no dialect of ours offers."""

    def __init__(self, server) -> None:
        self.bus = InMemorySubscriptionBus()
        self.tools = {name.removeprefix("tool_"): getattr(self, name) for name in dir(self) if name.startswith("tool_")}
        self.own = {
            method: server.get_request_handler(method).handler
            for method in ("tools/list", "tools/call", "resources/read", "resources/list")
        }
        for method, params, handler in (
            ("tools/list", types.PaginatedRequestParams, self.list_tools),
            ("tools/call", types.CallToolRequestParams, self.call_tool),
            ("resources/list", types.PaginatedRequestParams, self.list_resources),
            ("resources/read", types.ReadResourceRequestParams, self.read_resource),
            ("resources/subscribe", types.SubscribeRequestParams, self.done),
            ("resources/unsubscribe", types.UnsubscribeRequestParams, self.done),
            ("prompts/list", types.PaginatedRequestParams, self.list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self.get_prompt),
            ("logging/setLevel", types.SetLevelRequestParams, self.done),
            ("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(self.bus)),
        ):
            server.add_request_handler(method, params, handler)

    async def done(self, _ctx, _params):
        return types.EmptyResult()

    # tools

    async def list_tools(self, ctx, params):
        listed = await self.own["tools/list"](ctx, params)
        more = [
            types.Tool(name=name, description=handler.__doc__, input_schema=TAKES.get(name, object_schema({})))
            for name, handler in self.tools.items()
        ]
        return types.ListToolsResult(tools=[*listed.tools, *more])

    async def call_tool(self, ctx, params):
        if params.name not in self.tools:
            return await self.own["tools/call"](ctx, params)
        answer = await self.tools[params.name](ctx, params)
        return answer if isinstance(answer, types.InputRequiredResult) else types.CallToolResult(content=answer)

    async def tool_test_image_content(self, _ctx, _params):
        """Shows an image."""
        return [image()]

    async def tool_test_audio_content(self, _ctx, _params):
        """Plays a sound."""
        return [types.AudioContent(type="audio", data=SOUND, mime_type="audio/wav")]

    async def tool_test_embedded_resource(self, _ctx, _params):
        """Hands out a resource."""
        return [embedded("test://embedded-resource", "This is an embedded resource content.")]

    async def tool_test_multiple_content_types(self, _ctx, _params):
        """Hands out all kinds of things."""
        resource = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
        return [text("Multiple content types test:"), image(), resource]

    async def tool_test_tool_with_logging(self, ctx, _params):
        """Tells what it does."""
        for note in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await log(ctx, note)
            await anyio.sleep(PAUSE)
        return [text("Done.")]

    tool_test_logging_tool = tool_test_tool_with_logging

    async def tool_test_elicitation(self, ctx, params):
        """Asks the user."""
        fields = {"username": {"type": "string"}, "email": {"type": "string"}}
        return [text(f"User response: {await elicited(ctx, params.arguments['message'], fields)}")]

    async def tool_test_elicitation_sep1034_defaults(self, ctx, _params):
        """Asks the user and proposes answers."""
        return [text(f"Elicitation completed: {await elicited(ctx, 'Who?', DEFAULTS)}")]

    async def tool_test_elicitation_sep1330_enums(self, ctx, _params):
        """Asks the user to choose."""
        return [text(f"Elicitation completed: {await elicited(ctx, 'Which?', ENUMS)}")]

    async def tool_test_trigger_tool_change(self, _ctx, _params):
        """Says that tools have changed."""
        await self.bus.publish(ToolsListChanged())
        return [text("Changed.")]

    async def tool_test_trigger_prompt_change(self, _ctx, _params):
        """Says that prompts have changed."""
        await self.bus.publish(PromptsListChanged())
        return [text("Changed.")]

    async def tool_test_missing_capability(self, ctx, _params):
        """Needs a client with a model."""
        if not offers(ctx, "sampling"):
            needed = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(code=MISSING_REQUIRED_CLIENT_CAPABILITY, message="A model is needed.", data=needed)
        return [text("Fine.")]

    # tools that ask in the modern way: the question is the answer

    async def tool_test_input_required_result_elicitation(self, _ctx, params):
        """Asks for a name."""
        name = given(params, "user_name", "name")
        return required(user_name=NAME) if name is None else [text(f"Hello, {name}!")]

    tool_test_streaming_elicitation = tool_test_input_required_result_elicitation

    async def tool_test_input_required_result_list_roots(self, _ctx, params):
        """Asks for the client's roots."""
        roots = answers(params).get("client_roots")
        if not isinstance(roots, types.ListRootsResult):
            return required(client_roots=types.ListRootsRequest())
        return [text(" ".join(str(root.uri) for root in roots.roots))]

    async def tool_test_input_required_result_request_state(self, _ctx, params):
        """Asks, and wants its state back."""
        if params.request_state != "mine" or given(params, "confirm", "ok") is None:
            return required("mine", confirm=form("Please confirm", ok="boolean"))
        return [text("state-ok")]

    tool_test_input_required_result_tampered_state = tool_test_input_required_result_request_state

    async def tool_test_input_required_result_multiple_inputs(self, _ctx, params):
        """Asks three things at once."""
        if answers(params).keys() >= {"user_name", "greeting", "client_roots"}:
            return [text("Thank you.")]
        return required(
            "all", user_name=NAME, greeting=model("Generate a greeting"), client_roots=types.ListRootsRequest()
        )

    async def tool_test_input_required_result_multi_round(self, _ctx, params):
        """Asks twice."""
        if params.request_state == "two" and given(params, "step2", "color"):
            return [text("Thank you.")]
        if params.request_state == "one" and given(params, "step1", "name"):
            return required("two", step2=form("Step 2: What is your favorite color?", color="string"))
        return required("one", step1=form("Step 1: What is your name?", name="string"))

    async def tool_test_input_required_result_capabilities(self, ctx, params):
        """Asks what the client can answer."""
        if answers(params):
            return [text("Thank you.")]
        questions = {"elicitation": NAME, "sampling": model("Generate a greeting")}
        return required("some", **{name: one for name, one in questions.items() if offers(ctx, name)})

    # resources and prompts

    async def list_resources(self, ctx, params):
        listed = await self.own["resources/list"](ctx, params)
        binary = types.Resource(uri="test://static-binary", name="Image", description="A dot", mime_type="image/png")
        return types.ListResourcesResult(resources=[*listed.resources, binary])

    async def read_resource(self, ctx, params):
        if str(params.uri) != "test://static-binary":
            return await self.own["resources/read"](ctx, params)
        blob = types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PIXEL)
        return types.ReadResourceResult(contents=[blob])

    async def list_prompts(self, _ctx, _params):
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=name,
                    description=name,
                    arguments=[types.PromptArgument(name=one, required=True) for one in arguments],
                )
                for name, arguments in PROMPTS.items()
            ]
        )

    async def get_prompt(self, _ctx, params):
        arguments = params.arguments or {}
        missing = [one for one in PROMPTS.get(params.name, ()) if one not in arguments]
        if params.name not in PROMPTS or missing:
            raise MCPError(code=types.INVALID_PARAMS, message=f"No such prompt, or without {missing}.")
        if params.name == "test_input_required_result_prompt":
            context = given(params, "user_context", "context")
            if context is None:
                return required(user_context=form("What context should the prompt use?", context="string"))
            return prompt(text(context))
        if params.name == "test_prompt_with_arguments":
            return prompt(text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"))
        if params.name == "test_prompt_with_embedded_resource":
            resource = embedded(arguments["resourceUri"], "Embedded resource content for testing.")
            return prompt(resource, text("Please process the embedded resource above."))
        if params.name == "test_prompt_with_image":
            return prompt(image(), text("Please analyze the image above."))
        return prompt(text("This is a simple prompt for testing."))


PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
TAKES = {"test_elicitation": object_schema({"message": {"type": "string"}}, required=["message"])}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option 1", "Option 2", "Option 3"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def text(content: str):
    return types.TextContent(type="text", text=content)


def image():
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, content: str, mime_type: str = "text/plain"):
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(type="resource", resource=resource)


def prompt(*contents):
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in contents])


def form(message: str, **fields: str):
    schema = object_schema({name: {"type": kind} for name, kind in fields.items()}, required=fields, closed=False)
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def model(question: str):
    message = types.SamplingMessage(role="user", content=text(question))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=50))


NAME = form("What is your name?", name="string")


def required(state: str | None = None, **questions):
    return types.InputRequiredResult(input_requests=questions, request_state=state)


def answers(params) -> dict[str, Any]:
    return dict(params.input_responses or {})


def given(params, question: str, field: str):
    """What the user wrote into a field, if it was asked and answered."""
    answer = answers(params).get(question)
    return (answer.content or {}).get(field) if isinstance(answer, types.ElicitResult) else None


def offers(ctx, capability: str) -> bool:
    return getattr(ctx.session.client_capabilities, capability, None) is not None


async def log(ctx, note: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await ctx.session.send_log_message("info", note, related_request_id=ctx.request_id)


async def elicited(ctx, message: str, fields: dict[str, Any]) -> str:
    answer = await ctx.session.elicit_form(
        message, object_schema(fields, closed=False), related_request_id=ctx.request_id
    )
    return f"action={answer.action}, content={answer.content}"
