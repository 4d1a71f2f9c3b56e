import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { birdConfiguration } from "./bird-configuration.ts";
import { askBird, type BgpPlaces, bgpPlaces } from "./bird-control.ts";

const why = existsSync("/usr/sbin/bird") ? undefined : "needs bird2";
const GOOD = "protocol device { }\n";

let directory: string;
let places: BgpPlaces;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "bird-"));
  places = bgpPlaces(directory);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A daemon that answers each command with these lines. */
async function daemon(lines: string): Promise<{ asked: string[]; server: Server }> {
  mkdirSync(places.directory, { recursive: true });
  const asked: string[] = [];
  const server = createServer((socket) => {
    socket.write("0001 BIRD 2.0.12 ready.\n");
    socket.on("data", (text) => {
      asked.push(String(text).trim());
      socket.write(lines);
    });
  });
  await new Promise<void>((resolve) => server.listen(places.control, resolve));
  return { asked, server };
}

describe.skipIf(why !== undefined)(`the configuration of BIRD${why ? ` (${why})` : ""}`, () => {
  it("is written for the owner alone, and waits for a daemon that does not run", async () => {
    const configuration = birdConfiguration(places);
    expect(await configuration.settle(GOOD)).toMatchObject({ is: "written", why: expect.stringContaining("ENOENT") });
    expect(readFileSync(places.configuration, "utf8")).toBe(GOOD);
    expect(statSync(places.configuration).mode & 0o777).toBe(0o600);
    const { asked, server } = await daemon("0002-Reading configuration\n0003 Reconfigured\n");
    expect(await configuration.settle(GOOD)).toEqual({ is: "active" });
    expect(await configuration.settle(GOOD)).toEqual({ is: "active" });
    expect(asked).toEqual(["configure"]);
    server.close();
  });

  it("stays as it was when BIRD's check refuses another, which the daemon never sees", async () => {
    const configuration = birdConfiguration(places);
    await configuration.settle(GOOD);
    const { asked, server } = await daemon("0003 Reconfigured\n");
    const refused = await configuration.settle("protocol device {\n}\nprotocol nonsense\n");
    expect(refused).toMatchObject({ is: "refused", why: expect.stringMatching(/^line 3:/) });
    expect(readFileSync(places.configuration, "utf8")).toBe(GOOD);
    expect(existsSync(`${places.configuration}.new`)).toBe(false);
    expect(asked).toEqual([]);
    server.close();
  });

  it("is told to the daemon once in each life, since the last one may have ended before it did", async () => {
    await birdConfiguration(places).settle(GOOD);
    const { asked, server } = await daemon("0003 Reconfigured\n");
    expect(await birdConfiguration(places).settle(GOOD)).toEqual({ is: "active" });
    expect(asked).toEqual(["configure"]);
    server.close();
  });
});

it("an answer of the daemon has a code for each line, and a refusal is an error", async () => {
  const { server } = await daemon("1002-name BGP\n and more\n1006-  detail\n0000 \n");
  expect(await askBird(places.control, "show")).toEqual([
    { code: 1002, text: "name BGP" },
    { code: 1002, text: "and more" },
    { code: 1006, text: "  detail" },
    { code: 0, text: "" },
  ]);
  server.close();
  rmSync(places.control, { force: true });
  const refusing = await daemon("8002 line 1: no\n");
  await expect(askBird(places.control, "configure")).rejects.toThrow("line 1: no");
  refusing.server.close();
});
