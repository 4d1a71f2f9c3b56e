import type { ServiceWithoutAddress } from "../../api/protocol/ipam-report.ts";
import { type Controller, runController, watching } from "../../cluster/controller.ts";
import { holds, LOAD_BALANCERS } from "../../ipam/block-holder.ts";
import { NOTHING_IN_USE } from "../../ipam/in-use.ts";
import { createIpam } from "../../ipam/ipam.ts";
import { awaiting, type ControllerContext, observed, queueOf } from "../controller-context.ts";
import { type AssigningContext, assignAddresses } from "./assign-addresses.ts";

const ALL = "services";

export interface LoadBalancerController extends Controller {
  /** Services that are to have an address and have none, as of the last look. */
  withoutAddress(): readonly ServiceWithoutAddress[];
}

/**
 * Gives Services of type LoadBalancer addresses of IP pools. One key, one look at all of them: there are few, and what one has decides what is
 * left for the others.
 */
export function loadBalancerController(context: ControllerContext): LoadBalancerController {
  const { client, informers, settings, clock, metrics } = context;
  const { services, namespaces, pools, reservations, blocks, affinities } = informers;
  const copy = {
    blocks: () => blocks.list(),
    affinities: () => affinities.list(),
    // Limits of nodes are not those of Services, and blocks of nodes lend them nothing.
    configuration: () => ({ strictAffinity: true }),
    pools: () => pools.list(),
    reservations: () => reservations.list(),
    inUse: () => NOTHING_IN_USE,
  };
  const ipam = createIpam(client, LOAD_BALANCERS, copy, () => clock.now());
  const assigning: AssigningContext = { ...context, ipam };
  let lacking: readonly ServiceWithoutAddress[] = [];
  let isRepaired = false;

  const reconcile = async (): Promise<void> => {
    const { loadBalancer } = settings.current().controllers;
    // What was assigned before it was turned off stays: its Services are in use.
    if (!loadBalancer) lacking = [];
    else {
      if (!isRepaired) await ipam.repair();
      isRepaired = true;
      lacking = await assignAddresses(assigning, loadBalancer);
    }
    metrics.servicesWithoutAddress.set(lacking.length);
  };

  const all = () => [ALL];
  const controller = runController({
    name: "load-balancer",
    watches: [
      watching(services, ({ spec }) => (spec?.type === "LoadBalancer" ? [ALL] : [])),
      watching(blocks, (block) => (holds(LOAD_BALANCERS, block) ? [ALL] : [])),
      ...[namespaces, pools, reservations].map((informer) => watching(informer, all)),
      awaiting(affinities.synced),
      awaiting(settings.known),
    ],
    reconcile: observed(context, "load-balancer", reconcile),
    queue: queueOf(context),
    log: context.log,
  });
  controller.enqueue(ALL);
  const endSettings = settings.onChange(() => controller.enqueue(ALL));
  return {
    enqueue: controller.enqueue,
    withoutAddress: () => lacking,
    async stop() {
      endSettings();
      await controller.stop();
    },
  };
}
