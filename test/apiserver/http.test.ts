import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Api, startApi } from "../support/api.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const configMap = (name: string, value: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data: { value },
});

describe("over HTTP", () => {
  let api: Api;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.close());

  it("a body above three megabytes is refused with a Status, and the connection lives on", async () => {
    const answer = await api.create(MAPS, configMap("big", "x".repeat(4 * 1024 * 1024)));
    expect(answer.status).toBe(413);
    expect(answer.body).toMatchObject({ kind: "Status", reason: "RequestEntityTooLarge" });
    expect((await api.create(MAPS, configMap("small", "x"))).status).toBe(201);
  });

  it("a path whose escapes mean nothing is the client's mistake", async () => {
    const answer = await api.get(`${MAPS}/%zz`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ kind: "Status", reason: "BadRequest" });
  });

  it("a list of any size arrives whole, letters beyond ASCII included", async () => {
    const values = Array.from({ length: 40 }, (_, i) => `${i} żółw 🐢 ${"y".repeat(i * 1500)}`);
    for (const [i, value] of values.entries()) {
      await api.create(MAPS, configMap(`m-${String(i).padStart(2, "0")}`, value));
    }
    const { body } = await api.get(MAPS);
    expect(body.items.map((item: { data: { value: string } }) => item.data.value)).toEqual(values);
    expect((await api.get(`${MAPS}/m-00`)).body.data.value).toBe(values[0]);
  });

  it("a client that asks for a long list and reads nothing holds up nobody", async () => {
    for (let i = 0; i < 20; i++) await api.create(MAPS, configMap(`m-${i}`, "z".repeat(1_000_000)));
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    socket.write(`GET ${MAPS} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await new Promise((resolve) => socket.once("readable", resolve));
    expect((await api.get(`${MAPS}/m-1`)).status).toBe(200);
    socket.destroy();
    expect((await api.get(`${MAPS}/m-2`)).status).toBe(200);
  });

  it("requests sent ahead on one connection are answered in their order", async () => {
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    const heads = ["/version", "/readyz", `${MAPS}?limit=1`].map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n`);
    socket.write(`${heads.join("\r\n")}connection: close\r\n\r\n`);
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text.match(/gitVersion|\nok|ConfigMapList/g)).toEqual(["gitVersion", "\nok", "ConfigMapList"]);
  });
});
