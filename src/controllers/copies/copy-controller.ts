import { isDeepStrictEqual } from "node:util";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../api/object.ts";
import { type Client, createClient } from "../../cluster/client.ts";
import { type Controller, runController, watching } from "../../cluster/controller.ts";
import { createInformer } from "../../cluster/informer.ts";
import { keyOf } from "../../cluster/object-cache.ts";
import { slimReading } from "../../cluster/slim-reading.ts";
import { COPIED_KINDS, copyFolder } from "../../datastore/copied-kinds.ts";
import { ABSENT, deleteKey, writeKey } from "../../datastore/etcd/etcd-keys.ts";
import type { EtcdDatastore } from "../../datastore/open-datastore.ts";
import type { ControllerName } from "../config.ts";
import { type ControllerContext, observed, queueOf } from "../controller-context.ts";
import { copyOf } from "./copy-of.ts";

const WORKERS = 16;
/** Someone else was faster, or our copy is a moment behind. */
const RESYNC_MS = 100;

/** Which controller, as ENABLED_CONTROLLERS names it, copies a kind. */
const CONTROLLER_OF: Readonly<Record<string, ControllerName>> = {
  pods: "workloadendpoint",
  namespaces: "namespace",
  serviceaccounts: "serviceaccount",
  nodes: "node",
  networkpolicies: "policy",
};

/** Copies what agents read of Kubernetes into etcd, one key an object, and removes what is no longer there. */
export function copyController(context: ControllerContext, { copies, etcd }: EtcdDatastore): Controller {
  const { client, config, log } = context;
  const { enabled } = config.overrides;
  const there = createClient(copies, { userAgent: vendorNames.workloads.kubeControllers });
  const onError = (kind: ResourceKind) => (error: unknown) =>
    log.warn({ kind: kind.plural, error }, "watch failed, retrying");
  const follow = (from: Client, kind: ResourceKind) =>
    createInformer<KubeObject>(slimReading(from, copyOf), kind, { onError: onError(kind) });
  const kinds = COPIED_KINDS.filter(({ plural }) => enabled?.has(CONTROLLER_OF[plural]!) ?? true).map((kind) => ({
    kind,
    source: follow(client, kind),
    copy: createInformer<KubeObject>(there, kind, { onError: onError(kind) }),
  }));
  const byPlural = new Map(kinds.map((one) => [one.kind.plural, one]));

  const reconcile = async (key: string) => {
    const { plural, ref } = keyParts(key);
    const { kind, source, copy } = byPlural.get(plural)!;
    const [wanted, live] = [source.get(ref), copy.get(ref)];
    const expect = live ? Number(live.metadata.resourceVersion) : ABSENT;
    const path = `${copyFolder(vendorNames, kind)}${ref}`;
    if (wanted && live && isSame(wanted, live)) return;
    if (!wanted && !live) return;
    const done = wanted
      ? await writeKey(etcd, path, JSON.stringify(withoutVersion(wanted)), expect)
      : await deleteKey(etcd, path, expect);
    return done === undefined ? { requeueAfterMs: RESYNC_MS } : undefined;
  };
  const keysOf = (kind: ResourceKind) => (object: KubeObject) => [`${kind.plural} ${keyOf(object)}`];
  const controller = runController({
    name: "copies",
    watches: kinds.flatMap(({ kind, source, copy }) => [watching(source, keysOf(kind)), watching(copy, keysOf(kind))]),
    reconcile: observed(context, "copies", reconcile),
    workers: WORKERS,
    queue: queueOf(context),
    log,
  });
  return {
    enqueue: controller.enqueue,
    async stop() {
      await controller.stop();
      await Promise.all(kinds.flatMap(({ source, copy }) => [source.stop(), copy.stop()]));
    },
  };
}

function keyParts(key: string): { plural: string; ref: string } {
  const [plural = "", ref = ""] = key.split(" ");
  return { plural, ref };
}

function isSame(wanted: KubeObject, live: KubeObject): boolean {
  return isDeepStrictEqual(withoutVersion(wanted), withoutVersion(live));
}

function withoutVersion(object: KubeObject): KubeObject {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
