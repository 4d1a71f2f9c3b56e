import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import type { Client } from "../../../cluster/client.ts";
import { CONFIG_MAPS, NAMESPACES, PODS } from "../../../cluster/kinds.ts";
import { NO_REPORTS } from "../../action.ts";
import { type BareCluster, bareCluster } from "../../testing/bare-cluster.ts";
import { selectDataplane } from "./select-dataplane.ts";

const AGENT = { namespace: "vendor-system", name: "vendor-node-1" };
/** Any object with a field will do. */
const TARGET = { apiVersion: "v1", kind: "ConfigMap", namespace: "default", name: "installation" };

describe("a data plane that is selected again in a rollback", () => {
  let cluster: BareCluster;
  let client: Client;
  const waits: string[] = [];

  beforeEach(async () => {
    cluster = await bareCluster();
    client = cluster.client;
    waits.length = 0;
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
  const selected = async () =>
    ((await client.get(CONFIG_MAPS, TARGET))["data"] as Record<string, string>)["linuxDataplane"];
  async function undo(was: string, is: string): Promise<void> {
    const [apiVersion, kind, data] = [TARGET.apiVersion, TARGET.kind, { linuxDataplane: is }];
    await client.create(CONFIG_MAPS, { apiVersion, kind, metadata: { ...TARGET }, data });
    const inverse = { data: { linuxDataplane: was } };
    const inputs = { target: TARGET, patch: {}, field: "data.linuxDataplane", was };
    const waitingFor = (what: string) => void waits.push(what);
    const work = { ...cluster.engine(), ...NO_REPORTS, names: vendorNames, waitingFor };
    await selectDataplane.undo?.(inputs, work, { inverse });
  }

  it("restarts no agent while a node drains: nftables is selected when all have drained", async () => {
    const undone = undo("Nftables", "BPF");
    await expect.poll(() => waits).toEqual(["connections that only eBPF carries to end on node-1"]);
    expect(await selected()).toBe("BPF");
    await reports("Nftables");
    await undone;
    expect(await selected()).toBe("Nftables");
  });

  it("waits for nothing on the way back to eBPF, which goes on with what drains", async () => {
    await undo("BPF", "Nftables");
    expect([await selected(), waits]).toEqual(["BPF", []]);
  });
});
