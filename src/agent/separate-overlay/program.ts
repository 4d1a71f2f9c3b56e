import type { KubeObject } from "../../api/object.ts";
import { createClient } from "../../cluster/client.ts";
import { createInformer } from "../../cluster/informer.ts";
import { NODES } from "../../cluster/kinds.ts";
import type { Program } from "../../cluster/program.ts";
import { realKernel } from "../../kernel/kernel.ts";
import type { NetlinkEvent } from "../../kernel/netlink/netlink-port.ts";
import { systemClock } from "../../kit/clock.ts";
import { healthServer } from "../../kit/health-server.ts";
import { startPeriodicTasks } from "../periodic-tasks.ts";
import { readOverlayConfig } from "./config.ts";
import { SEPARATE_OVERLAY } from "./names.ts";
import { planOverlay } from "./overlay-plan.ts";
import { overlayTarget } from "./settle-overlay.ts";

/**
 * `vendor overlay`: connects the nodes' podCIDRs, by VXLAN or by routes, and nothing else. Pods are connected to their node by the CNI plugin.
 * What it wrote stays when it ends.
 */
export const overlayProgram: Program = async ({ env, log, signal, transport, listen, clock = systemClock }) => {
  const config = readOverlayConfig(env);
  const kernel = realKernel();
  const netlink = kernel.netlink();
  const target = overlayTarget(kernel, netlink, config.run);
  const client = createClient(transport(), { userAgent: "vendor-overlay", clock });
  const onError = (error: unknown) => log.warn({ kind: NODES.plural, error }, "watch failed, retrying");
  const nodes = createInformer<KubeObject>(client, NODES, { onError });
  const state: { ready: boolean; synced: boolean; problems: readonly string[] } = {
    ready: false,
    synced: false,
    problems: [],
  };
  const settle = async () => {
    if (!state.synced) return;
    const { nodeName: node, conf, masquerade } = config;
    const [links, addresses] = [netlink.links(), netlink.addresses()];
    const plan = planOverlay({ node, nodes: nodes.list(), conf, masquerade, links, addresses });
    await target.settle(plan);
    state.ready = true;
    state.problems = plan.problems;
  };
  const tasks = startPeriodicTasks([{ name: "overlay", run: settle }], { clock, log, signal });
  void nodes.synced.then(() => {
    state.synced = true;
    tasks.poke();
  });
  const watch = netlink.monitor((event) => concerns(event) && tasks.poke());
  const end = nodes.onChange(() => tasks.poke());
  const notReady = () => {
    const [failure] = [...tasks.problems().values(), ...state.problems];
    if (failure !== undefined) return failure;
    if (state.ready) return undefined;
    return state.synced ? "routes to other nodes are not written yet" : "waiting for the first list of nodes";
  };
  await listen(healthServer({ ready: { overlay: notReady }, log }), config.healthPort, config.healthHost);
  await tasks.done;
  end();
  watch.close();
  target.close();
  netlink.close();
  await nodes.stop();
  client.close();
};

/** Our own routes and our device may be removed by others; addresses of the node may change. */
function concerns(event: NetlinkEvent): boolean {
  switch (event.kind) {
    case "link":
      return event.link.name === SEPARATE_OVERLAY.device;
    case "route":
      return event.change === "removed" && event.route.protocol === SEPARATE_OVERLAY.protocol;
    case "address":
      return !event.address.address.startsWith("fe80:");
    default:
      return event.kind === "lost";
  }
}
