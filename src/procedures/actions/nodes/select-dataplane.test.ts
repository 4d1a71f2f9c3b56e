import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import { installation } from "../../../api/resources/installation.ts";
import { placesOf } from "../../../api/resources/resource.ts";
import { customResourceDefinitions } from "../../../api/schema/crd.ts";
import type { Client } from "../../../cluster/client.ts";
import { CRDS, NAMESPACES, PODS } from "../../../cluster/kinds.ts";
import { NO_REPORTS } from "../../action.ts";
import { fieldAt } from "../../field-at.ts";
import { type BareCluster, bareCluster } from "../../testing/bare-cluster.ts";
import { selectDataplane } from "./select-dataplane.ts";

const AGENT = { namespace: "vendor-system", name: "vendor-node-1" };
const TARGET = { apiVersion: "operator.vendor.io/v1", kind: "Installation", name: "default" };
const INSTALLATIONS = placesOf(installation, vendorNames).stored;
const FIELD = "spec.vendorNetwork.linuxDataplane";
const selecting = (linuxDataplane: string) => ({ spec: { variant: "OpenSource", vendorNetwork: { linuxDataplane } } });

describe("a data plane that is selected again in a rollback", () => {
  let cluster: BareCluster;
  let client: Client;
  const waits: string[] = [];

  beforeEach(async () => {
    cluster = await bareCluster();
    client = cluster.client;
    waits.length = 0;
    for (const crd of customResourceDefinitions()) await client.create(CRDS, crd);
    const { name, ...rest } = AGENT;
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: rest.namespace } });
    const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "vendor-node", uid: "1", controller: true };
    await client.create(PODS, {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name, ...rest, ownerReferences: [owner] } },
      spec: { nodeName: "node-1", containers: [{ name: "main", image: "vendor" }] },
    });
    await reports("DrainingBPF");
  });
  afterEach(() => cluster.close());

  const reports = (dataplane: string) =>
    client.patch(PODS, AGENT, {
      ...{ type: "merge", patch: { metadata: { annotations: { "vendor.io/dataplane": dataplane } } } },
    });
  const selected = async () => fieldAt(await client.get(INSTALLATIONS, TARGET), FIELD);
  async function undo(was: string, is: string, version = "v3.31.2"): Promise<void> {
    const { apiVersion, kind, name } = TARGET;
    await client.create(INSTALLATIONS, { apiVersion, kind, metadata: { name }, ...selecting(is) });
    await client.patch(
      INSTALLATIONS,
      TARGET,
      { type: "merge", patch: { status: { version } } },
      { subresource: "status" },
    );
    const inputs = { target: TARGET, patch: {}, field: FIELD, was };
    const waitingFor = (what: string) => void waits.push(what);
    const work = { ...cluster.engine(), ...NO_REPORTS, names: vendorNames, waitingFor };
    await selectDataplane.undo?.(inputs, work, { inverse: selecting(was) });
  }

  it("restarts no agent while a node drains: nftables is selected when all have drained", async () => {
    const undone = undo("Nftables", "BPF");
    await expect.poll(() => waits).toEqual(["connections that only eBPF carries to end on node-1"]);
    expect(await selected()).toBe("BPF");
    await reports("Nftables");
    await undone;
    expect(await selected()).toBe("Nftables");
  });

  it("waits for nothing where the operator keeps drains: long connections would hold a rollback up", async () => {
    await undo("Nftables", "BPF", "v3.31.3");
    expect([await selected(), waits]).toEqual(["Nftables", []]);
  });

  it("waits for nothing on the way back to eBPF, which goes on with what drains", async () => {
    await undo("BPF", "Nftables");
    expect([await selected(), waits]).toEqual(["BPF", []]);
  });
});
