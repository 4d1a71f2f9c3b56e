import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { fakeClock } from "../kit/fake-clock.ts";
import { silentLog } from "../kit/log.ts";
import { watchCniConfiguration } from "./cni-configuration.ts";

const OURS = `{ "name": "vendor", "plugins": [{ "type": "vendor" }] }\n`;
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A node's directory, and an agent that looks at it. */
function node() {
  const directory = mkdtempSync(join(tmpdir(), "cni-configuration-"));
  const clock = fakeClock();
  const restored: string[] = [];
  const path = join(directory, "10-vendor.conflist");
  const start = () => {
    const stopping = new AbortController();
    const copy = join(directory, "state", "cni.conflist");
    const watch = watchCniConfiguration({
      ...{ path, copy, clock, log: silentLog, signal: stopping.signal },
      onRestored: (file) => restored.push(file),
    });
    const stop = async () => {
      stopping.abort();
      await watch.done;
    };
    ends.push(stop);
    return { watch, stop };
  };
  ends.push(async () => rmSync(directory, { recursive: true, force: true }));
  return { directory, path, clock, restored, start };
}

describe("the CNI configuration of a node", () => {
  it("is written again when it is deleted, and that is said once", async () => {
    const { path, clock, restored, start } = node();
    writeFileSync(path, OURS);
    start();
    rmSync(path);
    await clock.advance(5_000);
    expect(readFileSync(path, "utf8")).toBe(OURS);
    await clock.advance(60_000);
    expect(restored).toEqual(["10-vendor.conflist"]);
  });

  it("also by an agent that starts when it is gone; a new one of the installer stays", async () => {
    const { path, clock, restored, start } = node();
    writeFileSync(path, OURS);
    await start().stop();
    rmSync(path);
    await start().stop();
    expect(readFileSync(path, "utf8")).toBe(OURS);
    const newer = OURS.replace("}]", ', "mtu": 1400 }]');
    writeFileSync(path, newer);
    start();
    await clock.advance(5_000);
    rmSync(path);
    await clock.advance(5_000);
    expect(readFileSync(path, "utf8")).toBe(newer);
    expect(restored).toHaveLength(2);
  });

  it("is not made up where none was ever there", async () => {
    const { path, clock, start } = node();
    start();
    await clock.advance(60_000);
    expect(existsSync(path)).toBe(false);
  });

  it.each([
    ["05-cilium.conflist", `{ "plugins": [{ "type": "cilium-cni" }] }`, ["file 05-cilium.conflist"]],
    ["05-broken.conf", "{", ["file 05-broken.conf"]],
    ["00-multus.conf", `{ "type": "multus-shim" }`, []],
    ["01-mesh.conflist", `{ "plugins": [{ "type":"vendor" }, { "type": "mesh-cni" }] }`, []],
    ["20-flannel.conflist", `{ "plugins": [{ "type": "flannel" }] }`, []],
    ["05-notes.txt", "", []],
  ])("%s", async (name, text, expected) => {
    const { directory, path, clock, start } = node();
    writeFileSync(path, OURS);
    writeFileSync(join(directory, name), text);
    const { watch } = start();
    expect(watch.problems().map(({ object }) => object)).toEqual(expected);
    rmSync(join(directory, name));
    await clock.advance(5_000);
    expect(watch.problems()).toEqual([]);
  });
});
