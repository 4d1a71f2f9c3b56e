import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { createInformer, type Informer } from "../../src/cluster/informer.ts";
import { keyOf } from "../../src/cluster/object-cache.ts";
import { copyOf } from "../../src/controllers/copies/copy-of.ts";
import { COPIED_KINDS, copyFolder } from "../../src/datastore/copied-kinds.ts";
import { ABSENT, deleteKey, writeKey } from "../../src/datastore/etcd/etcd-keys.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { type LabSink, NetworkPolicyLab, networkPolicyCases, verdictOf } from "../calc/network-policy-lab.ts";
import { NO_CONFORMANCE_DATA } from "../support/conformance.ts";
import { hasEtcd, NO_ETCD } from "../support/etcd-server.ts";
import { type EtcdClient, etcdClient } from "./etcd-client.ts";

const NODE = "node-1";
const cases = networkPolicyCases();
const why = cases ? (hasEtcd() ? undefined : NO_ETCD) : NO_CONFORMANCE_DATA;

/** Objects written to etcd as vendor-kube-controllers write them, and followed there as agents follow them. */
class EtcdLab implements LabSink {
  readonly #opened: EtcdClient;
  readonly #informers = new Map<string, Informer<KubeObject>>();
  readonly #wanted = new Map<string, KubeObject>();
  /** By key, as etcd has them. */
  readonly #there = new Map<string, { text: string; revision: number }>();
  readonly calculator = createCalculator(NODE, vendorNames);
  readonly model = new ModelCopy();

  constructor(opened: EtcdClient) {
    this.#opened = opened;
    for (const kind of COPIED_KINDS) {
      const informer = createInformer<KubeObject>(opened.client, kind);
      informer.onChange(({ type, object }) => {
        if (type === "deleted") this.calculator.remove(kind, object.metadata);
        else this.calculator.set(object);
      });
      this.#informers.set(kind.kind, informer);
    }
  }

  /** The next case starts from nothing. */
  clear(): void {
    this.#wanted.clear();
  }

  set(object: KubeObject): void {
    this.#wanted.set(`${object.kind} ${keyOf(object)}`, copyOf(object));
  }

  remove({ kind }: { kind: string }, ref: { name: string; namespace?: string }): void {
    this.#wanted.delete(`${kind} ${refKey(ref)}`);
  }

  /** Writes what is different, and waits until all of it was seen. */
  async sync(): Promise<void> {
    const writes = [...this.#wanted].map(([key, wanted]) => this.#put(key, wanted));
    const gone = [...this.#there.keys()].filter((key) => !this.#wanted.has(key));
    await Promise.all([...writes, ...gone.map((key) => this.#delete(key))]);
    const unseen = () => [...this.#there].filter(([key, { revision }]) => this.#seen(key) !== revision);
    const left = () => gone.filter((key) => this.#seen(key) !== undefined);
    await expect.poll(() => [...unseen(), ...left()].length, { interval: 1, timeout: patience(60_000) }).toBe(0);
    const delta = this.calculator.takeDelta();
    if (delta) this.model.apply(delta);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }

  #seen(key: string): number | undefined {
    const [kind = "", ref = ""] = key.split(" ");
    const version = this.#informers.get(kind)?.get(ref)?.metadata.resourceVersion;
    return version === undefined ? undefined : Number(version);
  }

  async #put(key: string, wanted: KubeObject): Promise<void> {
    const text = JSON.stringify(wanted);
    const before = this.#there.get(key);
    if (before?.text === text) return;
    const revision = await writeKey(this.#opened.etcd, pathOf(key), text, before?.revision ?? ABSENT);
    this.#there.set(key, { text, revision: revision! });
  }

  async #delete(key: string): Promise<void> {
    await deleteKey(this.#opened.etcd, pathOf(key), this.#there.get(key)!.revision);
    this.#there.delete(key);
  }
}

function pathOf(key: string): string {
  const [kind, ref] = key.split(" ");
  return `${copyFolder(vendorNames, COPIED_KINDS.find((one) => one.kind === kind)!)}${ref}`;
}

const refKey = ({ name, namespace }: { name: string; namespace?: string }) =>
  namespace === undefined ? name : `${namespace}/${name}`;

describe.skipIf(why)(`public NetworkPolicy cases with etcd as the store${why ? ` (${why})` : ""}`, () => {
  let opened: EtcdClient;
  let lab: EtcdLab;
  beforeAll(async () => {
    opened = await etcdClient();
    lab = new EtcdLab(opened);
  });
  afterAll(async () => {
    await lab?.close();
    await opened?.close();
  });

  it("every verdict agrees, in all cases and after each of their steps", async () => {
    const wrong: string[] = [];
    let verdicts = 0;
    for (const { Description, Steps } of cases ?? []) {
      lab.clear();
      const world = new NetworkPolicyLab(lab, NODE);
      for (const [index, { Actions = [], Allowed }] of Steps.entries()) {
        for (const action of Actions) world.act(action);
        await lab.sync();
        for (const probe of world.probes(Allowed)) {
          verdicts++;
          if (verdictOf(lab.model, world, probe) === probe.allowed) continue;
          wrong.push(`${Description}, step ${index + 1}: ${probe.from}>${probe.to}:${probe.protocol}/${probe.port}`);
        }
      }
    }
    expect(wrong.slice(0, 20)).toEqual([]);
    expect(verdicts).toBe(111_036);
  });
});
