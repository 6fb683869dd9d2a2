// The TypeScript client, 1.x: calls what it is told on standard input, prints what came back. It drops replies that do
// not fit their output schema, so that each is shown at all says that it fits.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { folder, calls } = JSON.parse(readFileSync(0, "utf-8"));
const require = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${name}.js`)).href);
const { Client } = await load("index");
const { StreamableHTTPClientTransport } = await load("streamableHttp");

const results = [];
for (const { url, tools } of calls) {
  const client = new Client({ name: "typescript", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const listed = (await client.listTools()).tools.map((tool) => tool.name);
  for (const { name, arguments: given } of tools) {
    const reply = await client.callTool({ name, arguments: given });
    results.push({ url, name, listed: listed.includes(name), failed: reply.isError ?? false, body: reply.structuredContent, text: reply.content[0].text });
  }
  await client.close();
}
process.stdout.write(JSON.stringify(results));
