import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import { placesOf } from "../../../api/resources/resource.ts";
import { vendorStatus } from "../../../api/resources/vendor-status.ts";
import { customResourceDefinitions } from "../../../api/schema/crd.ts";
import { CRDS, NAMESPACES, PODS } from "../../../cluster/kinds.ts";
import { NO_REPORTS } from "../../action.ts";
import { type BareCluster, bareCluster } from "../../testing/bare-cluster.ts";
import { awaitStatuses } from "./wait-for-status.ts";

const AGENT = { namespace: "vendor-system", name: "vendor-node-1" };
const STATUSES = placesOf(vendorStatus, vendorNames).stored;
const REFUSED = "refused: no BTF here";

describe("a wait for a status that says what an agent refused", () => {
  let cluster: BareCluster;
  const waits: string[] = [];

  beforeEach(async () => {
    cluster = await bareCluster();
    const { client } = cluster;
    waits.length = 0;
    for (const crd of customResourceDefinitions()) await client.create(CRDS, crd);
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: AGENT.namespace } });
    const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: "vendor-node", uid: "1", controller: true };
    const annotations = { "vendor.io/programs": REFUSED };
    await client.create(PODS, {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { ...AGENT, annotations, ownerReferences: [owner] } },
      spec: { nodeName: "node-1", containers: [{ name: "main", image: "vendor" }] },
    });
    await client.create(STATUSES, {
      apiVersion: `${STATUSES.group}/${STATUSES.version}`,
      kind: STATUSES.kind,
      metadata: { name: "network" },
    });
    await says("True", "EbpfProgramsRefused");
  });
  afterEach(() => cluster.close());

  async function says(
    degraded: "True" | "False",
    reason: string,
    available = degraded === "True" ? "False" : "True",
  ): Promise<void> {
    const message = degraded === "True" ? "eBPF programs do not load on 1 node" : "";
    const lastTransitionTime = "2026-01-01T00:00:00Z";
    const conditions = [
      { type: "Available", status: available, reason, message, lastTransitionTime },
      { type: "Progressing", status: "False", reason, message: "", lastTransitionTime },
      { type: "Degraded", status: degraded, reason, message, lastTransitionTime },
    ];
    const patch = { status: { conditions } };
    await cluster.client.patch(STATUSES, { name: "network" }, { type: "merge", patch }, { subresource: "status" });
  }
  function waited(): Promise<void> {
    const waitingFor = (what: string) => void waits.push(what);
    const work = { ...cluster.engine(), ...NO_REPORTS, names: vendorNames, waitingFor };
    return awaitStatuses({ statuses: ["network"] }, work);
  }

  it("ends at once while the agent still refuses", async () => {
    await expect(waited()).rejects.toMatchObject({ code: "STEP_HOPELESS" });
  });

  it("goes on when no agent does: the status is of what one reported before", async () => {
    const patch = { metadata: { annotations: { "vendor.io/programs": "loads" } } };
    await cluster.client.patch(PODS, AGENT, { type: "merge", patch });
    const done = waited();
    await expect.poll(() => waits).toEqual(["VendorStatus network to observe that no agent refuses any more"]);
    await says("False", "AllAvailable");
    await done;
  });

  it("is over when only single objects are not in effect: their owners may leave them so", async () => {
    await says("True", "NodeProblems", "True");
    await waited();
    expect(waits).toEqual([]);
  });
});
