import { ADDRESS_REFUSED } from "../../api/protocol/service-conditions.ts";
import { resolveHosts } from "../../cluster/api-server-hosts.ts";
import { type Controller, runController, watching } from "../../cluster/controller.ts";
import { SERVICES } from "../../cluster/kinds.ts";
import { keyOf } from "../../cluster/object-cache.ts";
import { type ControllerContext, observed, queueOf } from "../controller-context.ts";
import { every } from "../every.ts";
import { conditionPatch, refusalMessage } from "./refusal-condition.ts";
import { serviceRefusals } from "./service-refusals.ts";

/** The key under which changes of nodes, pods and IPAM are calculated; no Service has it. */
const HOLDERS = "";
/** As often as agents resolve the API server's name. */
const RESOLVE_MS = 60_000;

/**
 * Reports on a Service that the eBPF data plane refuses some of its external addresses: a condition while it does, and an event. One key is
 * one Service. With nftables kube-proxy serves Services and refuses nothing, so that no Service has the condition.
 */
export function serviceAddressController(context: ControllerContext): Controller {
  const { client, informers, config, events, clock } = context;
  const { nodes, pods, pools, blocks, services, apiServerSlice, dataplaneConfigurations } = informers;
  // Listens before the controller does: a key is worked on with what the change that brought it has changed.
  const refusals = serviceRefusals(informers, config.foreignAddresses);
  const isEbpf = () => dataplaneConfigurations.list().some(({ spec }) => spec.bpfEnabled === true);

  const reconcile = async (key: string): Promise<void> => {
    const serving = isEbpf();
    // Also for a Service: its verdict must be about the object that is there now.
    if (serving) for (const changed of refusals.settle()) controller.enqueue(changed);
    const service = services.get(key);
    if (!service || service.metadata.deletionTimestamp !== undefined) return;
    const refusal = serving ? refusals.of(key) : undefined;
    const patch = conditionPatch(service, refusal, new Date(clock.now()));
    if (refusal !== undefined) events.warn(service, ADDRESS_REFUSED, refusalMessage(refusal));
    if (patch) await client.patch(SERVICES, service.metadata, { type: "strategic", patch }, { subresource: "status" });
  };

  const everyService = () => services.list().map(keyOf);
  const holders = () => [HOLDERS];
  const controller = runController({
    name: "service-addresses",
    watches: [
      watching(services, (service) => [keyOf(service)]),
      watching(dataplaneConfigurations, everyService),
      watching(nodes, holders),
      watching(pods, holders),
      watching(pools, holders),
      watching(blocks, holders),
      watching(apiServerSlice, holders),
    ],
    reconcile: observed(context, "service-addresses", reconcile),
    queue: queueOf(context),
    log: context.log,
  });

  const resolve = async (): Promise<void> => {
    const addresses = await resolveHosts(config.apiServers);
    // A name that does not resolve for a moment must not give the addresses away.
    if (addresses.length === 0) return;
    refusals.setApiServers(addresses);
    controller.enqueue(HOLDERS);
  };
  void resolve();
  const endResolving = every(
    clock,
    () => RESOLVE_MS,
    () => void resolve(),
  );
  return {
    enqueue: controller.enqueue,
    async stop() {
      endResolving();
      await controller.stop();
      refusals.stop();
    },
  };
}
