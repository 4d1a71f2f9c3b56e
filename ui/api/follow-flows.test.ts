import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { flowKey, NOTHING } from "../../src/flows/flow.fixture.ts";
import type { Flow } from "./flow.ts";
import { type FollowedFlows, followFlows } from "./follow-flows.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

function flow(name: string): Flow {
  const addresses = { sourceAddresses: [], destinationAddresses: [] };
  return { ...flowKey(), ...NOTHING, ...addresses, metadata: { name }, lastSeen: "2026-01-31T12:00:00Z" };
}

const list = (names: string[], resourceVersion: string, next?: string) =>
  JSON.stringify({
    items: names.map(flow),
    metadata: { resourceVersion, ...(next && { continue: next }), totals: { flows: names.length } },
  });
const line = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`;

/** Answers each request by the next of these; returns what was asked. */
async function serve(...answers: ((response: ServerResponse, request: IncomingMessage) => void)[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://page");
    searchParams.delete("limit");
    searchParams.delete("allowWatchBookmarks");
    asked.push(`${pathname.split("/").at(-1)}?${searchParams}`);
    answers.shift()?.(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = new AbortController();
  closers.push(() => {
    stop.abort();
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const api = { origin, namespace: "", token: "secret" };
  return { asked, events: followFlows(api, { query: "web", most: 100, signal: stop.signal }) };
}

/** Up to the first event that is like this. */
async function until(events: AsyncGenerator<FollowedFlows>, isLast: (event: FollowedFlows) => boolean) {
  const seen: FollowedFlows[] = [];
  for (let next = await events.next(); !next.done; next = await events.next()) {
    seen.push(next.value);
    if (isLast(next.value)) break;
  }
  return seen;
}

it("lists all pages, watches from there, and lists again when its version is gone", async () => {
  const { asked, events } = await serve(
    (response) => response.end(list(["a"], "5", "more")),
    (response) => response.end(list(["b"], "5")),
    (response) => {
      response.write(line("ADDED", flow("c")) + line("BOOKMARK", { metadata: { resourceVersion: "8" } }));
      response.end(line("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "gone" }));
    },
    (response) => response.end(list(["a", "b", "c"], "12")),
  );
  const seen = await until(events, (event) => event.is === "page" && event.flows.length === 3);
  expect(asked).toEqual([
    "flows?query=web",
    "flows?query=web&continue=more",
    "flows?query=web&watch=true&resourceVersion=5",
    "flows?query=web",
  ]);
  expect(seen.filter(({ is }) => is === "change")).toMatchObject([{ isNew: true, flow: { metadata: { name: "c" } } }]);
});

it("goes on from the last bookmark after a connection that was cut off in the middle of a line", async () => {
  const { asked, events } = await serve(
    (response) => response.end(list([], "5")),
    (response) => {
      response.write(line("BOOKMARK", { metadata: { resourceVersion: "8" } }));
      response.write('{"type":"ADD', () => response.destroy());
    },
    (response) => response.write(line("MODIFIED", flow("d"))),
  );
  await until(events, ({ is }) => is === "change");
  expect(asked.at(-1)).toBe("flows?query=web&watch=true&resourceVersion=8");
});

it("stops where a right is missing, with the sentence of the API", async () => {
  const message = 'User "ana" cannot list resource "flows"';
  const { events } = await serve((response) =>
    response.writeHead(403).end(JSON.stringify({ kind: "Status", code: 403, reason: "Forbidden", message })),
  );
  const seen = await until(events, () => false);
  expect(seen.at(-1)).toMatchObject({ is: "state", state: { at: "refused", refusal: { status: 403, message } } });
});

it("sends the token with every request", async () => {
  const tokens: (string | undefined)[] = [];
  const { events } = await serve(
    (response, { headers }) => {
      tokens.push(headers.authorization);
      response.end(list([], "5"));
    },
    (response, { headers }) => {
      tokens.push(headers.authorization);
      response.write(line("ADDED", flow("a")));
    },
  );
  await until(events, ({ is }) => is === "change");
  expect(tokens).toEqual(["Bearer secret", "Bearer secret"]);
});
