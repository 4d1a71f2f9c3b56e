import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digestOf, openReleaseFiles } from "./open-release-files.ts";

let server: Server;
let site: string;
let folder: string;
let asked: string[];

beforeAll(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? "");
    const answers: Record<string, () => void> = {
      "/v3.31.3/manifests/vendor.yaml": () => response.end("kind: A\n"),
      "/moved/manifests/vendor.yaml": () =>
        response.writeHead(302, { location: "/v3.31.3/manifests/vendor.yaml" }).end(),
      "/loop/manifests/vendor.yaml": () => response.writeHead(302, { location: "vendor.yaml" }).end(),
      "/elsewhere/manifests/vendor.yaml": () => response.writeHead(302, { location: "ftp://x/" }).end(),
      "/broken/manifests/vendor.yaml": () => response.writeHead(500).end(),
      "/binary/manifests/vendor.yaml": () => response.end(Buffer.from([0xff, 0xfe, 0x00])),
      "/big/manifests/vendor.yaml": () => response.end(Buffer.alloc(17 * 1024 * 1024, "x")),
    };
    const answer = answers[request.url ?? ""];
    if (answer) answer();
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  folder = await mkdtemp(join(tmpdir(), "release-"));
  await mkdir(join(folder, "manifests"));
  await writeFile(join(folder, "manifests/vendor.yaml"), "kind: B\n");
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

describe("the files of a release", () => {
  it("are the copies that came with this tool", async () => {
    const files = openReleaseFiles();
    expect(files.from).toBe("built in");
    const text = await files.read("operator-crds.yaml");
    expect(text).toContain("kind: CustomResourceDefinition");
    expect(digestOf(text)).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it("or those of an address, with or without /manifests, each asked for once", async () => {
    for (const address of [`${site}/v3.31.3`, `${site}/v3.31.3/`, `${site}/v3.31.3/manifests`]) {
      const files = openReleaseFiles({ manifestUrl: address });
      expect(files.from).toBe(`${site}/v3.31.3/manifests`);
      asked = [];
      expect(await Promise.all([files.read("vendor.yaml"), files.read("vendor.yaml")])).toEqual([
        "kind: A\n",
        "kind: A\n",
      ]);
      expect(asked).toHaveLength(1);
    }
    expect(await openReleaseFiles({ manifestUrl: `${site}/moved` }).read("vendor.yaml")).toBe("kind: A\n");
    expect(await openReleaseFiles({ manifestUrl: pathToFileURL(folder).href }).read("vendor.yaml")).toBe("kind: B\n");
  });

  it.each([
    ["not an address", () => "manifests", "MANIFEST_URL_UNUSABLE"],
    ["another protocol", () => "ftp://example.com/", "MANIFEST_URL_UNUSABLE"],
    ["credentials in it", () => "https://me:secret@example.com/", "MANIFEST_URL_UNUSABLE"],
    ["nothing there", () => `${site}/nowhere`, "MANIFEST_NOT_FOUND"],
    ["no such folder", () => "file:///nowhere", "MANIFEST_NOT_FOUND"],
    ["a server that fails", () => `${site}/broken`, "MANIFEST_NOT_SERVED"],
    ["no server", () => "http://127.0.0.1:1/", "MANIFEST_NOT_SERVED"],
    ["redirects without end", () => `${site}/loop`, "MANIFEST_NOT_SERVED"],
    ["a redirect to elsewhere", () => `${site}/elsewhere`, "MANIFEST_NOT_SERVED"],
    ["no text", () => `${site}/binary`, "MANIFEST_NOT_TEXT"],
    ["no end", () => `${site}/big`, "MANIFEST_TOO_BIG"],
  ])("are refused with a code: %s", async (_what, address, code) => {
    await expect(async () => openReleaseFiles({ manifestUrl: address() }).read("vendor.yaml")).rejects.toMatchObject({
      code,
    });
  });

  it("have names that lead nowhere else", async () => {
    await expect(openReleaseFiles().read("../package.json")).rejects.toMatchObject({ code: "MANIFEST_NAME_UNUSABLE" });
    await expect(openReleaseFiles().read("no-such.yaml")).rejects.toMatchObject({
      code: "MANIFEST_MISSING_FROM_PACKAGE",
    });
  });
});
