import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseLabelSelector } from "../../src/api/schema/selector.ts";
import {
  matchesExpression,
  parseSelectorExpression,
  printExpression,
} from "../../src/api/schema/selector-expression.ts";
import { decodeObject } from "../../src/apiserver/decode.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { FakeDisk } from "../../src/apiserver/storage/fake-disk.ts";
import { encodeFrame } from "../../src/apiserver/storage/frame.ts";
import { logName } from "../../src/apiserver/storage/journal-names.ts";
import { encodeRecord } from "../../src/apiserver/storage/record.ts";
import { recover } from "../../src/apiserver/storage/recovery.ts";
import { createClient } from "../../src/cluster/client.ts";
import { clusterEnv } from "../../src/cluster/config.ts";
import { SECRETS } from "../../src/cluster/kinds.ts";
import { loadConnection } from "../../src/cluster/kubeconfig.ts";
import { runPlugin } from "../../src/cni/plugin.ts";
import { objectBytes } from "../../src/dataplane/ebpf/programs/objects.ts";
import { Btf } from "../../src/kernel/bpf/btf.ts";
import { readElf } from "../../src/kernel/bpf/elf.ts";
import { KernelBtf } from "../../src/kernel/bpf/kernel-btf.ts";
import { loadObject } from "../../src/kernel/bpf/object.ts";
import { ATTR, encodeTuple, readEntry } from "../../src/kernel/conntrack/conntrack-message.ts";
import { fakeKernel } from "../../src/kernel/fake/fake-kernel.ts";
import { readAddress } from "../../src/kernel/netlink/addresses.ts";
import { readLink } from "../../src/kernel/netlink/links.ts";
import { readNeighbour } from "../../src/kernel/netlink/neighbours.ts";
import type { NetlinkSocket } from "../../src/kernel/netlink/netlink.ts";
import {
  addressBytes,
  attribute,
  type NetlinkMessage,
  nested,
  parseMessages,
  text,
  u32,
  u32be,
} from "../../src/kernel/netlink/netlink-message.ts";
import { readRoute } from "../../src/kernel/netlink/routes.ts";
import { rulesOn } from "../../src/kernel/netlink/rules.ts";
import { isUnaltered, makePlan } from "../../src/procedures/make-plan.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import { readDocuments } from "../../src/procedures/resources/read-documents.ts";
import { openJournal } from "../../src/procedures/run/journal.ts";
import { pack, unpack } from "../../src/procedures/run/packed.ts";
import { type Api, startApi } from "../support/api.ts";
import { FUZZ_TIMEOUT_MS, fuzz, printTotal } from "./fuzz.ts";

const options = { timeout: FUZZ_TIMEOUT_MS };
afterAll(printTotal);

function message(type: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(16);
  header.writeUInt32LE(16 + body.length, 0);
  header.writeUInt16LE(type, 4);
  return Buffer.concat([header, body]);
}

describe("what the kernel sends", () => {
  it("netlink messages", options, async () => {
    const address = attribute(1, addressBytes("10.0.0.1").bytes);
    const vxlan = nested(18, text(1, "vxlan"), nested(2, u32(1, 4096), attribute(4, Buffer.from([18, 181]))));
    const samples = [
      message(16, Buffer.alloc(16), text(3, "eth0"), u32(4, 1500), attribute(1, Buffer.alloc(6, 2)), vxlan),
      message(20, Buffer.from([2, 24, 0, 0, 1, 0, 0, 0]), address, attribute(2, addressBytes("fd00::1").bytes)),
      message(24, Buffer.from([2, 24, 0, 0, 254, 80, 0, 1, 0, 0, 0, 0]), address, u32(4, 3), nested(8, u32(2, 1400))),
      message(28, Buffer.alloc(12, 2), address, attribute(2, Buffer.alloc(6, 1))),
      message(32, Buffer.from([2, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0]), u32(6, 100), u32(15, 200)),
    ];
    const rules = (one: NetlinkMessage) => rulesOn({ dump: () => [one] } as unknown as NetlinkSocket).rules();
    const readers = [readLink, readAddress, readRoute, readNeighbour, rules];
    await fuzz("netlink message", samples, (input) => {
      for (const one of parseMessages(input)) for (const read of readers) attempt(() => read(one));
    });
  });

  it("nf_conntrack messages", options, async () => {
    const tuple = { protocol: 6, source: "10.0.0.1", destination: "10.0.0.2", sourcePort: 1, destinationPort: 2 };
    const icmp = { ...tuple, protocol: 58, source: "fd00::1", destination: "fd00::2", icmp: { type: 128, code: 0 } };
    const samples = [tuple, icmp].map((one) =>
      message(
        0x100,
        Buffer.from([2, 0, 0, 0]),
        encodeTuple(ATTR.original, one),
        encodeTuple(ATTR.reply, one),
        u32be(3, 6),
      ),
    );
    await fuzz("nf_conntrack message", samples, (input) => {
      for (const one of parseMessages(input)) attempt(() => readEntry(one));
    });
  });

  it("BTF", options, async () => {
    const types = readElf(objectBytes("workload")).section(".BTF")?.data as Buffer;
    const small = types.subarray(0, 4_000);
    await fuzz("BTF", [types, small], (input) => {
      attempt(() => {
        const btf = new Btf(Buffer.from(input));
        for (const { id } of btf.types) btf.sizeOf(id);
      });
      attempt(() => new KernelBtf(input).fieldOffset("sk_buff", ["len"]));
    });
  });
});

/** Rethrows what is no typed refusal: `fuzz` tells them apart, and the other readers still get the input. */
function attempt(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error)) throw error;
  }
}

describe("files", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "fuzz-"));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  it("BPF objects", options, async () => {
    await fuzz("BPF object", [Buffer.from(objectBytes("workload"))], (input) => {
      const kernel = fakeKernel();
      loadObject(kernel.bpf, input, { missingFunctions: "zero" }).close();
    });
  });

  it("kubeconfig", options, async () => {
    const kubeconfig = join(directory, "config");
    const sample = [
      "apiVersion: v1\nkind: Config\ncurrent-context: a\n",
      "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:6443', insecure-skip-tls-verify: true}}]\n",
      "contexts: [{name: a, context: {cluster: a, user: a, namespace: x}}]\n",
      "users: [{name: a, user: {token: secret}}]\n",
    ].join("");
    await fuzz("kubeconfig", [sample, "a: &a [*a]\nclusters: *a\n"], (input) => {
      writeFileSync(kubeconfig, input);
      loadConnection({ kubeconfig }, clusterEnv({}, false));
    });
  });

  it("the log of the store", options, async () => {
    const stored = { namespace: "a", name: "b", revision: 3, uid: "u", deleting: false, labels: undefined, fields: {} };
    const put = encodeRecord({ kind: "put", resource: "/x", stored: { ...stored, body: Buffer.from("{}") } });
    const records = [...put, ...encodeRecord({ kind: "start", gap: { after: 3, until: 9 } })];
    const log = Buffer.concat([encodeFrame(0, records), encodeFrame(1, encodeRecord({ kind: "end" }))]);
    // Half of them with a good checksum, so that what is inside is read, too.
    await fuzz("log of the store", [log, Buffer.concat(records)], async (input, random) => {
      const bytes = random.chance(50) ? input : encodeFrame(0, [input]);
      const file = { bytes, synced: bytes.length };
      await recover(new FakeDisk(new Map([[logName(1), file]])), 100);
    });
  });

  it("plan files", options, async () => {
    const path = join(directory, "plan.yaml");
    const step = {
      id: "a",
      action: "b",
      inputs: {},
      title: "c",
      where: "d",
      because: "e",
      risk: "none",
      reversible: true,
    };
    const plan = makePlan({
      ...({ procedure: "switch", names: "vendor", title: "t", command: "c", observed: { a: "b" }, notes: [] } as const),
      steps: [step as Plan["steps"][number]],
    });
    await fuzz(
      "plan file",
      [JSON.stringify(plan), "apiVersion: v1\nkind: List\nitems: []\n", "? {a: b}\n: [c]\n"],
      async (input) => {
        writeFileSync(path, input);
        const read = await readDocuments([path]);
        for (const { object } of read) isUnaltered(object as unknown as Plan);
      },
    );
  });
});

describe("what clients and runtimes send", () => {
  it("CNI standard input", options, async () => {
    const sample = JSON.stringify({
      cniVersion: "1.0.0",
      name: "n",
      type: "vendor",
      socket: "/s",
      ipam: { type: "x" },
    });
    const env = { command: "ADD", containerId: "c", netns: "/n", ifname: "eth0", args: "K8S_POD_NAME=a;B" };
    const answers = [{}, null, 7, { error: { code: 7, msg: "no" } }, { result: {} }, { result: { ips: 3 } }, "x"];
    await fuzz("CNI standard input", [sample, "{}", "null", "[1]"], async (input, random) => {
      const command = random.of(["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION", "", "\0"]);
      const answer = async () => random.of(answers);
      const { exitCode, output } = await runPlugin({ ...env, command }, input.toString(), answer, () => {});
      // A runtime reads an error as JSON.
      if (exitCode === 1) expect(JSON.parse(output)).toHaveProperty("code");
    });
  });

  it("request bodies", options, async () => {
    const kinds = kubernetesKinds();
    const kind = kinds.find(({ kind: name }) => name === "Pod") as (typeof kinds)[number];
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a", labels: { a: "b" } },
      spec: { containers: [{ name: "c" }] },
    };
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\n${["b", "c", "d", "e", "f", "g", "h"].map((name, at) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[at]}`).join(",")}]`).join("\n")}\n`;
    const samples = [
      JSON.stringify(pod),
      "apiVersion: v1\nkind: Pod\nmetadata: {name: &n a, labels: {x: *n}}\n",
      bomb,
      "? {a: b}\n: [c]\n",
      "[".repeat(20_000),
    ];
    const types = [
      "application/json",
      "application/yaml",
      "application/vnd.kubernetes.protobuf",
      "application/cbor",
      "",
    ];
    await fuzz("request body", samples, (input, random) => {
      decodeObject(kind, input, random.of(types), random.of(["Ignore", "Warn", "Strict"]));
    });
  });

  it("label selectors", options, async () => {
    const samples = ["a=b,c!=d", "a in (b, c),!d", "x notin (),y", "a==b,", "kubernetes.io/name>5", "((((((("];
    await fuzz("label selector", samples, (input) => parseLabelSelector(input.toString()));
  });

  it("selectors of policies", options, async () => {
    const samples = [
      'a == "b" && !(c in {"d", "e"} || has(f))',
      "all()",
      'a contains "x"',
      "!".repeat(500),
      "(".repeat(3_000),
      "has(a) && ".repeat(500),
    ];
    await fuzz("policy selector", samples, (input) => {
      const parsed = parseSelectorExpression(input.toString());
      if ("problem" in parsed) return;
      matchesExpression(parsed.expression, { a: "b" });
      printExpression(parsed.expression);
    });
  });

  it("the journal of runs", options, async () => {
    const api: Api = await startApi();
    const namespace = "default";
    const local = { write: () => {}, read: () => undefined };
    const client = createClient(api.server.transport(), { userAgent: "fuzz" });
    const journal = openJournal({ client, namespace, tool: "v3.31.3", identity: "fuzz", local });
    const record = {
      format: 1,
      id: "run-1",
      tool: "v3.31.3",
      startedAt: "",
      outcome: "running",
      steps: [],
      heading: "forward",
    };
    const labels = {
      "app.kubernetes.io/managed-by": "vendorctl",
      "procedures.vendor.io/run": "run-1",
      "procedures.vendor.io/part": "record",
    };
    const packed = pack({ steps: [record] });
    await fuzz("journal of runs", [JSON.stringify(record), ...packed.parts], async (input, random) => {
      unpack({ parts: [input], sha256: createHash("sha256").update(input).digest("hex") });
      if (!random.chance(5)) return;
      await client.deleteCollection(SECRETS, { namespace });
      await client.create(SECRETS, {
        ...{ apiVersion: "v1", kind: "Secret" },
        metadata: { name: "vendorctl-run-1", namespace, labels },
        data: { record: input.toString("base64") },
      });
      for (const run of await journal.list()) expect("record" in run || "damaged" in run).toBe(true);
    });
    await api.close();
  });
});
