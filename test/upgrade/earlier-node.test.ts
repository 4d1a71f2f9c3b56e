/**
 * What the release before left on a node, byte for byte as it wrote it: pinned BPF maps, files, nftables tables. Names in the code may change;
 * an upgrade still takes all of this over. Annotations and journals have tests of their own (`api/protocol`, `procedures/run`).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readAgentConfig } from "../../src/agent/config.ts";
import { TABLES } from "../../src/agent/dataplanes.ts";
import { podRecords } from "../../src/agent/pods/pod-records.ts";
import { readArmed, rollbackWatchdog } from "../../src/agent/rollback-watchdog.ts";
import { ConntrackMigration, hasConntrack } from "../../src/dataplane/ebpf/conntrack/migrate-conntrack.ts";
import { addressText } from "../../src/dataplane/ebpf/net-bytes.ts";
import { mapDirectory, otherMapDirectories } from "../../src/dataplane/ebpf/programs/programs.ts";
import { migrateServices } from "../../src/dataplane/ebpf/services/migrate-services.ts";
import { pinnedGeneration } from "../../src/dataplane/switchover/node-mode.ts";
import {
  backendLayout,
  conntrackEntryLayout,
  fiveTupleLayout,
  frontendLayout,
  TOLD,
} from "../../src/gen/bpf/layout.gen.ts";
import type { BpfMap, BpfPort } from "../../src/kernel/bpf/bpf-port.ts";
import { fakeKernel } from "../../src/kernel/fake/fake-kernel.ts";
import { silentLog } from "../../src/kit/log.ts";
import { ACTIONS } from "../../src/procedures/actions/all.ts";

const ROOT = "/sys/fs/bpf/vendor";
const EARLIER = `${ROOT}/maps_36881e2c6b14`;

/** 10.244.0.5:40000 asks 10.96.0.10:80, which is 10.244.1.7:8080 on another node. Keys and values, in hex. */
const ASKS = "00000000000000000000ffff0af4000500000000000000000000ffff0a60000a409c500006000000";
const ANSWERS = "00000000000000000000ffff0af4010700000000000000000000ffff0af40005901f409c06000000";
const EARLIER_MAPS: Record<string, readonly (readonly [key: string, value: string])[]> = {
  flows: [
    [
      ASKS,
      "00f2052a010000000c00000000000000480d0000000000000300000004000000000000000103100000000000000000000000ffff0af4000500000000000000000000ffff0af40107409c901f0600000009000000665544332211000000000000",
    ],
    [
      ANSWERS,
      "00f2052a010000000c00000000000000480d0000000000000300000004000000110000000101110000000000000000000000ffff0a60000a00000000000000000000ffff0af400055000409c0600000009000000665544332211000000000000",
    ],
  ],
  // Mode 1 (eBPF acts), epoch 7, generation 513.
  node: [
    ["00000000", "01000000"],
    ["02000000", "07000000"],
    ["03000000", "01020000"],
  ],
  frontends: [["00000000000000000000ffff0a60000a50000600", "0900000010000000302a000015000000010000001600000000000000"]],
  backends: [["1500000000000000", "00000000000000000000ffff0af40107901f000000000000"]],
  affinities: [
    [
      "00000000000000000000ffff0af400050900000000000000",
      "00000000000000000000ffff0af40107901f00000000000000f2052a01000000",
    ],
  ],
};

const hex = (text: string) => Buffer.from(text, "hex");
const rowsOf = (map: BpfMap) => map.entries().map(([key, value]) => [key.toString("hex"), value.toString("hex")]);

describe("maps an earlier agent pinned", () => {
  let bpf: BpfPort;
  let ours: Record<string, BpfMap>;
  const map = (name: string) => ours[name] as BpfMap;

  beforeEach(() => {
    ({ bpf } = fakeKernel());
    bpf.makePinDirectory(EARLIER);
    const makeMap = (name: string) => {
      const [key, value] = EARLIER_MAPS[name]![0]!;
      const sizes = { keySize: key.length / 2, valueSize: value.length / 2 };
      return bpf.createMap({ name, type: "hash", ...sizes, maxEntries: 64 });
    };
    ours = Object.fromEntries(Object.keys(EARLIER_MAPS).map((name) => [name, makeMap(name)]));
    const sizes = { keySize: fiveTupleLayout.size, valueSize: conntrackEntryLayout.size };
    ours["flows"] = bpf.createMap({ name: "flows", type: "hash", ...sizes, maxEntries: 64 });
    for (const [name, rows] of Object.entries(EARLIER_MAPS)) {
      const earlier = makeMap(name);
      for (const [key, value] of rows) earlier.update(hex(key), hex(value));
      earlier.pin(`${EARLIER}/${name}`);
    }
  });

  it("are found below the directory of their layout, with the last drain's generation", () => {
    expect([mapDirectory(ROOT), ...otherMapDirectories(bpf, ROOT)]).toContain(EARLIER);
    expect(hasConntrack(bpf, EARLIER)).toBe(true);
    expect(pinnedGeneration(bpf, ROOT)).toBe(513);
  });

  it("hand over every connection with its translation, its path and its approvals", async () => {
    const carry = new ConntrackMigration(bpf, EARLIER, map);
    await carry.copy();
    carry.close();
    const TOLD_FROM = 2 * conntrackEntryLayout.at.told;
    const kept = rowsOf(map("flows")).map(([key, value]) => [key, value!.slice(0, TOLD_FROM)]);
    expect(kept).toEqual(EARLIER_MAPS["flows"]!.map(([key, value]) => [key, value.slice(0, TOLD_FROM)]));
    expect(rowsOf(map("node"))).toEqual(expect.arrayContaining(EARLIER_MAPS["node"] as unknown[]));
    const asked = conntrackEntryLayout.read(map("flows").lookup(hex(ASKS))!);
    // Established, through the overlay, translated.
    expect(asked).toMatchObject({
      packets: 12n,
      state: 1,
      path: 3,
      flags: 16,
      approvedIn: 3,
      approvedOut: 4,
      service: 9,
      // Nothing of what passed before is new to flow logs.
      ...{ told: TOLD.TOLD_STARTED, toldPackets: 12n, toldBytes: 3400n },
    });
    expect([addressText(asked.to.dst), asked.to.dport]).toEqual(["10.244.1.7", 8080]);
    const answered = conntrackEntryLayout.read(map("flows").lookup(hex(ANSWERS))!);
    expect(answered).toMatchObject({ path: 1, flags: 17, out: 17 });
    expect(fiveTupleLayout.read(hex(ANSWERS))).toMatchObject({ sport: 8080, dport: 40000, protocol: 6 });
  });

  it("hand over services with their numbers, and clients with their backends", async () => {
    await migrateServices(bpf, EARLIER, map);
    for (const name of ["frontends", "backends", "affinities"]) expect(rowsOf(map(name))).toEqual(EARLIER_MAPS[name]);
    const [frontend] = map("frontends").entries();
    expect(frontendLayout.read(frontend![1])).toMatchObject({ service: 9, affinity: 10_800, clusterList: 21 });
    const [backend] = map("backends").entries();
    expect(addressText(backendLayout.read(backend![1]).address)).toBe("10.244.1.7");
  });
});

describe("files an earlier agent wrote", () => {
  let root: string;
  let directories: { run: string; state: string };
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "earlier-node-"));
    directories = { run: join(root, "run"), state: join(root, "state") };
    for (const directory of [directories.run, directories.state]) mkdirSync(directory);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));
  const watchdog = () =>
    rollbackWatchdog({ directories, seconds: 60, pools: () => [], start: () => {}, log: silentLog });

  it("an armed rollback watchdog stays armed", () => {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const record = `{"deadline":"9000000000000000000","boot":"${boot}","pools":["10.244.0.0/16"]}\n`;
    writeFileSync(join(directories.run, "dead-man.json"), record);
    expect(readArmed(directories)).toMatchObject({ deadline: "9000000000000000000", pools: ["10.244.0.0/16"] });
    expect(watchdog().armed()).toBe(true);
  });

  it("a node that left eBPF is not switched to it again", () => {
    const record = '{"why":"rescued by hand","at":"2026-01-02T03:04:05.000Z"}\n';
    writeFileSync(join(directories.state, "left-ebpf.json"), record);
    expect(watchdog().blocked()).toBe("rescued by hand (2026-01-02T03:04:05.000Z)");
  });

  it("pods keep their interfaces and addresses", () => {
    const record = {
      ...{ containerId: "4f2a", ifname: "eth0", namespace: "shop", pod: "db", netns: "/var/run/netns/cni-1" },
      ...{ interfaceName: "ven0123456789a", mac: "ee:00:00:00:00:01", mtu: 1450, handle: "k8s-pod-network.4f2a" },
      ...{ addresses: ["10.244.0.5/32"], state: "ready" },
    };
    writeFileSync(join(directories.state, "4f2a.eth0.json"), JSON.stringify(record));
    expect(podRecords(directories.state).get("4f2a", "eth0")).toEqual(record);
  });
});

it("nftables tables keep their names, and the watchdog's period its variable", () => {
  expect(TABLES).toEqual({ filter: "vendor", nat: "vendor-nat", keep: "vendor-keep", reroute: "vendor-reroute" });
  expect(Object.values(readAgentConfig({ NODENAME: "n1", DEAD_MAN_SECONDS: "91" }))).toContain(91);
});

it("every action that a journal may name is still there", () => {
  const named = [
    ...["adopt-fields", "apply-manifest", "apply-objects", "delete-host-endpoints", "delete-object", "delete-objects"],
    ...["enable-auto-host-endpoints", "forget-owner-references", "hold-nodes", "label-nodes", "merge-patch"],
    ...["migrate-stored-versions", "prove-dataplane", "prove-owned-objects", "prove-removed", "release-nodes"],
    ...["remove-custom-resource", "restore-owner-references", "run-tool", "save-owner-references", "save-service"],
    ...["select-dataplane", "set-proxy-mode", "start-canary", "stop-canary", "strip-owner-references"],
    ...["verify-version", "wait-for-rollout", "wait-for-status", "wait-outside"],
  ];
  expect(Object.keys(ACTIONS)).toEqual(expect.arrayContaining(named));
});
