"""The Python client, 1.x: calls what it is told on standard input, prints what came back."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    results = []
    for site in json.load(sys.stdin)["calls"]:
        async with (
            streamablehttp_client(site["url"]) as (receive, send, _),
            ClientSession(receive, send) as session,
        ):
            await session.initialize()
            listed = [tool.name for tool in (await session.list_tools()).tools]
            for one in site["tools"]:
                reply = await session.call_tool(one["name"], one["arguments"])
                results.append(
                    {
                        "url": site["url"],
                        "name": one["name"],
                        "listed": one["name"] in listed,
                        "failed": bool(reply.isError),
                        "body": reply.structuredContent,
                        "text": reply.content[0].text,
                    }
                )
    print(json.dumps(results))


asyncio.run(main())
