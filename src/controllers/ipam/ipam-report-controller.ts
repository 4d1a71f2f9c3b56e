import { isDeepStrictEqual } from "node:util";
import { type IpamReport, ipamReportAnnotations, MOST_REPORTED } from "../../api/protocol/ipam-report.ts";
import { type Controller, runController } from "../../cluster/controller.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { PODS } from "../../cluster/kinds.ts";
import { awaiting, type ControllerContext, observed, queueOf } from "../controller-context.ts";
import { findAbandoned } from "./abandoned.ts";
import { duplicateAddresses } from "./duplicates.ts";
import { liveObjects } from "./live-objects.ts";

const REPORT = "report";
/** One pass over what is watched, and a write only when the report changes. */
const PERIOD_MS = 15_000;

const NOTHING: IpamReport = { duplicates: [], leakedAddresses: 0, blocksWithoutNode: 0, servicesWithoutAddress: [] };

/** Reports in the annotations of its own pod what is wrong with addresses. It repairs nothing: garbage collection does. */
export function ipamReportController(
  context: ControllerContext,
  servicesWithoutAddress: () => IpamReport["servicesWithoutAddress"],
): Controller {
  const { client, informers, config, metrics, log } = context;
  const { nodes, pods, blocks } = informers;
  let reported: IpamReport = NOTHING;

  const write = async (report: IpamReport) => {
    const patch = { metadata: { annotations: ipamReportAnnotations(report) } };
    const own = { name: config.podName, namespace: config.namespace };
    await client.patch(PODS, own, { type: "merge", patch }, { subresource: "status" }).catch((error: unknown) => {
      // Not run as a pod: then the metric and the log have it.
      if (!isNotFound(error)) throw error;
    });
    reported = report;
  };

  const reconcile = async () => {
    const found = findAbandoned({ blocks: blocks.list(), affinities: [], handles: [], live: liveObjects(informers) });
    const report: IpamReport = {
      duplicates: duplicateAddresses(pods.list(), blocks.list()),
      leakedAddresses: found.filter(({ kind }) => kind === "address").length,
      blocksWithoutNode: found.filter((one) => one.kind === "block" && one.node !== undefined).length,
      servicesWithoutAddress: servicesWithoutAddress().slice(0, MOST_REPORTED),
    };
    metrics.duplicates.set(report.duplicates.length);
    if (!isDeepStrictEqual(report, reported)) {
      for (const { address, pods: names } of report.duplicates) log.warn({ address, pods: names }, "duplicate address");
      await write(report);
    }
    return { requeueAfterMs: PERIOD_MS };
  };

  const controller = runController({
    name: "ipam-report",
    watches: [nodes, pods, blocks].map(({ synced }) => awaiting(synced)),
    reconcile: observed(context, "ipam-report", reconcile),
    queue: queueOf(context),
    log,
  });
  controller.enqueue(REPORT);
  return {
    enqueue: controller.enqueue,
    async stop() {
      await controller.stop();
      // The copy with the lease reports from now on; an old report would contradict it.
      if (!isDeepStrictEqual(reported, NOTHING)) {
        await write(NOTHING).catch((error: unknown) => log.warn({ error }, "cannot withdraw the IPAM report"));
      }
    },
  };
}
