import { expect, it } from "vitest";
import { vendorNames } from "../../../api/names.ts";
import { NO_REPORTS } from "../../action.ts";
import { bareCluster } from "../../testing/bare-cluster.ts";
import { cleanNodes } from "./clean-nodes.ts";

it("a node that left the cluster after the plan was made is named, and does not count as clean", async () => {
  const cluster = await bareCluster();
  try {
    const measured: string[] = [];
    const reports = { ...NO_REPORTS, measured: (figure: string) => void measured.push(figure) };
    const work = { ...cluster.engine(), ...reports, names: vendorNames };
    const inputs = { nodes: ["gone"], image: "vendor", cni: { binDir: "/opt/cni/bin", confDir: "/etc/cni/net.d" } };
    await cleanNodes.confirm?.(inputs, work, undefined);
    expect(measured).toEqual([
      "nothing of the service is left on 0 of 1 nodes",
      "no longer in the cluster, and not cleaned: gone",
    ]);
  } finally {
    await cluster.close();
  }
});
