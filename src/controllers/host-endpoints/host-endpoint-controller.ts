import { vendorNames } from "../../api/names.ts";
import type { HostEndpoint } from "../../api/resources/host-endpoint.ts";
import { type Controller, runController, watching } from "../../cluster/controller.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { durationMs } from "../../kit/duration.ts";
import { awaiting, type ControllerContext, observed, queueOf } from "../controller-context.ts";
import { every } from "../every.ts";
import type { NodeSettings } from "../settings/effective-settings.ts";
import { HOST_ENDPOINTS, isOurs } from "../stored-kinds.ts";
import { desiredEndpoints } from "./desired-endpoints.ts";
import { type EndpointIndex, endpointIndex } from "./endpoint-index.ts";
import { type EndpointPlan, planEndpoints } from "./endpoint-plan.ts";
import { type HostEndpointRules, hostEndpointRules } from "./host-endpoint-rules.ts";
import { nodeFacts } from "./node-facts.ts";
import { tunnelAddresses, tunnelsIn } from "./tunnel-addresses.ts";

const { createdBy } = vendorNames.labels;
/** The profile is looked for again this soon; without it an endpoint would cut its node off. */
const PROFILE_RECHECK_MS = 500;
const RESYNC_MS = 300_000;
const WORKERS = 4;

/** One key is one node, there or gone: its endpoints are compared with what it should have, and made so. */
export function hostEndpointController(context: ControllerContext): Controller {
  const { informers, settings, metrics, clock } = context;
  const { nodes, hostEndpoints, blocks, profiles } = informers;
  // Both listen before the controller does: a key is worked on with what the change that brought it has changed.
  const book = endpointIndex(hostEndpoints);
  const tunnels = tunnelAddresses(blocks);
  const rulesOf = readOnce();

  const wantedFor = (name: string, settingsNow: NodeSettings): HostEndpoint[] => {
    const node = nodes.get(name);
    return node ? desiredEndpoints(nodeFacts(node, tunnels.of(name)), rulesOf(settingsNow)) : [];
  };

  const reconcile = async (name: string) => {
    const { node: settingsNow } = settings.current().controllers;
    // Left out of the configuration: the controller does not run, and what it made stays.
    if (!settingsNow) return undefined;
    const wanted = wantedFor(name, settingsNow);
    book.claim(name, wanted);
    const plan = planEndpoints({
      wanted,
      present: (endpoint) => hostEndpoints.get(endpoint),
      ours: book.ofNode(name),
      claimedElsewhere: (endpoint) => book.isClaimedElsewhere(endpoint, name),
    });
    emitEvents(context, book, name, plan);
    metrics.hostEndpoints.set(book.count());
    if (plan.create.length > 0 && !profiles.get(vendorNames.hostEndpoints.allowAllProfile)) {
      return { requeueAfterMs: PROFILE_RECHECK_MS };
    }
    await applyPlan(context, plan);
    return undefined;
  };

  const controller = runController({
    name: "host-endpoints",
    watches: [
      watching(nodes, ({ metadata }) => [metadata.name]),
      watching(hostEndpoints, (endpoint) => book.nodesOf(endpoint)),
      watching(blocks, (block) => [...tunnelsIn(block).keys()]),
      awaiting(profiles.synced),
      awaiting(settings.known),
    ],
    reconcile: observed(context, "host-endpoints", reconcile),
    workers: WORKERS,
    queue: queueOf(context),
    log: context.log,
  });

  const lookAtAll = () => {
    for (const { metadata } of nodes.list()) controller.enqueue(metadata.name);
    for (const node of book.nodes()) controller.enqueue(node);
  };
  const ends = [settings.onChange(lookAtAll), every(clock, () => periodMs(context), lookAtAll)];
  return {
    enqueue: controller.enqueue,
    async stop() {
      for (const end of ends) end();
      await controller.stop();
      tunnels.stop();
      book.stop();
    },
  };
}

/** Selectors and patterns are read once per change of the settings, not once per node. */
function readOnce(): (settings: NodeSettings) => HostEndpointRules {
  let last: { settings: NodeSettings; rules: HostEndpointRules } | undefined;
  return (settings) => {
    if (last?.settings !== settings) last = { settings, rules: hostEndpointRules(settings.hostEndpoint) };
    return last.rules;
  };
}

function periodMs({ settings }: ControllerContext): number {
  const period = settings.latest()?.controllers.node?.reconcilerPeriod;
  return (period && durationMs(period)) || RESYNC_MS;
}

async function applyPlan({ client, log }: ControllerContext, plan: EndpointPlan): Promise<void> {
  for (const endpoint of plan.create) {
    await client.create(HOST_ENDPOINTS, endpoint);
    log.info({ hostEndpoint: endpoint.metadata.name }, "created a host endpoint");
  }
  for (const endpoint of plan.replace) {
    await client.replace(HOST_ENDPOINTS, endpoint);
    log.info({ hostEndpoint: endpoint.metadata.name }, "updated a host endpoint from its node");
  }
  for (const { metadata } of plan.remove) {
    const { name, uid, resourceVersion } = metadata;
    // With uid and resourceVersion as preconditions: an endpoint whose label was removed since is the user's.
    await client
      .delete(HOST_ENDPOINTS, { name }, { preconditions: { uid, resourceVersion } })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    log.info({ hostEndpoint: name }, "removed a host endpoint");
  }
}

function emitEvents(
  { events, metrics, informers }: ControllerContext,
  book: EndpointIndex,
  name: string,
  plan: EndpointPlan,
) {
  book.setConflicts(name, plan.conflicts.length);
  metrics.hostEndpointConflicts.set(book.conflicts());
  for (const { wanted, taken } of plan.conflicts) {
    const about = taken ?? informers.nodes.get(name);
    if (about) events.warn(about, "HostEndpointNameTaken", conflictSentence(name, wanted, taken));
  }
}

function conflictSentence(node: string, { metadata }: HostEndpoint, taken: Parameters<typeof isOurs>[0] | undefined) {
  const lacks = `Node ${node} gets no automatic host endpoint ${metadata.name}`;
  return taken && !isOurs(taken)
    ? `${lacks}: one of that name does not have the label ${createdBy.key}=${createdBy.value}. Rename or delete it.`
    : `${lacks}: another node's has that name. Give the template another generateName.`;
}
