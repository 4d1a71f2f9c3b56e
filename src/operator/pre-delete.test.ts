import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import type { Client } from "../cluster/client.ts";
import { DEPLOYMENTS, NAMESPACES } from "../cluster/kinds.ts";
import { systemClock } from "../kit/clock.ts";
import { silentLog } from "../kit/log.ts";
import { storedKind } from "./managed-kinds.ts";
import { removeCustomResources } from "./pre-delete.ts";
import { type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

const OPERATOR = { namespace: "vendor-operator", name: "vendor-operator" };

let lab: OperatorLab;
let stop: AbortController;
beforeEach(async () => {
  lab = await operatorLab();
  stop = new AbortController();
});
afterEach(() => lab.stop());

const remove = (options: { client?: Client; timeoutMs?: number } = {}) =>
  removeCustomResources({
    client: lab.kubectl,
    clock: systemClock,
    log: silentLog,
    signal: stop.signal,
    namespace: OPERATOR.namespace,
    timeoutMs: 60_000,
    ...options,
  });

async function install(): Promise<void> {
  lab.startOperator();
  await lab.installation();
  await lab.request("apiServer");
  for (const part of ["network", "ippools", "apiserver"]) await lab.untilStatus(part, "Available");
}

async function left(): Promise<string[]> {
  const kinds = (["installation", "apiServer"] as const).map(storedKind);
  const found = await Promise.all(kinds.map((kind) => lab.get(kind, { name: "default" })));
  return found.flatMap((object) => (object ? [object.kind] : []));
}

describe("before helm deletes the operator", () => {
  it("the custom resources are deleted, and the operator has removed what it installed", async () => {
    await install();
    await remove();
    expect(await left()).toEqual([]);
    expect(await lab.get(NAMESPACES, { name: "vendor-system" })).toBeUndefined();
    await remove();
  });

  it("a server that is out of reach for a moment is asked again", async () => {
    await install();
    let asked = 0;
    const client: Client = {
      ...lab.kubectl,
      get: (...args) => {
        asked += 1;
        if (asked % 4 === 1) return Promise.reject(new StatusError(503, "ServiceUnavailable", "busy"));
        return lab.kubectl.get(...args);
      },
    };
    await remove({ client });
    expect(await left()).toEqual([]);
    expect(asked).toBeGreaterThan(4);
  });

  it("nothing is deleted while no operator would remove the finalizers", async () => {
    await install();
    await lab.kubectl.patch(DEPLOYMENTS, OPERATOR, { type: "merge", patch: { spec: { replicas: 0 } } });
    await expect(remove()).rejects.toMatchObject({ code: "PRE_DELETE_NO_OPERATOR" });
    const found = await lab.get<KubeObject>(storedKind("apiServer"), { name: "default" });
    expect(found?.metadata.deletionTimestamp).toBeUndefined();
  });

  it("a limit and a stop end with a failure that names what it waited for, because success would let helm go on", async () => {
    const kind = storedKind("installation");
    const apiVersion = `${kind.group}/${kind.version}`;
    const metadata = { name: "default", finalizers: ["example.test/mine"] };
    await lab.kubectl.create(kind, { apiVersion, kind: kind.kind, metadata, spec: { variant: "OpenSource" } });
    const named = expect.stringContaining("Installation default to be deleted") as string;
    await expect(remove({ timeoutMs: 1 })).rejects.toMatchObject({ code: "PRE_DELETE_TIMEOUT", message: named });
    stop.abort();
    await expect(remove()).rejects.toMatchObject({ code: "PRE_DELETE_STOPPED", message: named });
    await lab.kubectl.patch(kind, metadata, { type: "merge", patch: { metadata: { finalizers: null } } });
  });
});
