import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshCommand, optionalPrograms } from "./fresh-machine.mjs";

const missing =
  process.getuid?.() !== 0
    ? "needs root"
    : existsSync("/proc/self/ns/time")
      ? undefined
      : "needs a kernel with time namespaces";

const ASK = `
  const { hostname, networkInterfaces, uptime } = require("node:os");
  const { existsSync, readdirSync } = require("node:fs");
  console.log(JSON.stringify({
    uptime: uptime(), hostname: hostname(), interfaces: networkInterfaces(), umask: process.umask(),
    devices: readdirSync("/sys/class/net"), pinned: readdirSync("/sys/fs/bpf"), run: readdirSync("/run").sort(),
    groups: readdirSync("/sys/fs/cgroup").length, env: { ...process.env }, offset: new Date(0).getTimezoneOffset(),
    there: process.argv.slice(1).filter((path) => existsSync(path)),
  }));`;

describe.skipIf(missing)(`a machine that started a minute ago${missing ? ` (${missing})` : ""}`, () => {
  let folder;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "fresh-machine-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function ask(removes, paths) {
    const machine = { path: process.env["PATH"], home: folder, removes };
    const { program, args, env } = freshCommand({ ...machine, command: [process.execPath, "-e", ASK, ...paths] });
    const done = spawnSync(program, args, { env, encoding: "utf8" });
    expect(done.stderr).toBe("");
    return JSON.parse(done.stdout);
  }

  it("has an uptime, a name, a network, file systems and settings of its own", () => {
    const seen = ask([], [process.execPath]);
    expect(seen.uptime).toBeLessThan(180);
    expect(seen).toMatchObject({ hostname: "fresh-machine", umask: 0o077, devices: ["lo"] });
    // The kernel itself puts these two into every BPF file system.
    expect(seen.pinned.filter((name) => !/^(?:maps|progs)\.debug$/.test(name))).toEqual([]);
    // The last is what mount itself leaves there.
    expect(["kept", "usr", "mount"]).toEqual(expect.arrayContaining(seen.run));
    expect(seen.groups).toBeGreaterThan(0);
    expect(Object.values(seen.interfaces).flat()).toMatchObject([{ address: "127.0.0.1" }]);
    expect(seen.env).toMatchObject({ CI: "true", LC_ALL: "C", HOME: folder });
    expect(seen.env).not.toHaveProperty("VITEST");
    expect(seen.offset).toBe(-(12 * 60 + 45));
    expect(seen.there).toEqual([process.execPath]);
  });

  it("leaves this machine as it is, and can be without its optional programs", () => {
    const program = `/usr/local/bin/clang-of-test-${process.pid}`;
    writeFileSync(program, "");
    try {
      const programs = optionalPrograms();
      expect(programs).toContain(program);
      expect(ask(programs, programs).there).toEqual([]);
      expect(programs.filter((path) => !existsSync(path))).toEqual([]);
    } finally {
      rmSync(program);
    }
  });
});

it("knows optional programs by their names, in every folder that may have them", () => {
  const folders = {
    "/usr/bin": ["kubectl", "clang", "clang-14", "node", "openssl"],
    "/usr/sbin": ["nft", "iptables", "ip6tables-save", "xtables-nft-multi", "ip"],
    "/usr/lib": ["x86_64-linux-gnu", "node_modules"],
    "/usr/lib/x86_64-linux-gnu": ["libnftables.so.1", "libc.so.6"],
  };
  expect(optionalPrograms((folder) => folders[folder] ?? [])).toEqual([
    "/usr/bin/kubectl",
    "/usr/bin/clang",
    "/usr/bin/clang-14",
    "/usr/bin/openssl",
    "/usr/sbin/nft",
    "/usr/sbin/iptables",
    "/usr/sbin/ip6tables-save",
    "/usr/sbin/xtables-nft-multi",
    "/usr/lib/x86_64-linux-gnu/libnftables.so.1",
  ]);
});
