import { simulatedNodeAnnotations } from "../api/protocol/simulated-node.ts";
import type { Clock } from "../kit/clock.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { installedImageRules } from "./installed/image-rules.ts";
import { NodeServices } from "./programs/node-services.ts";
import { platformAddresses, platformServesClusterIP } from "./programs/platform-addresses.ts";
import { programRunner } from "./programs/program-runner.ts";
import { PROGRAMS, type ProgramTable } from "./programs/program-table.ts";
import { SimulatedAgents } from "./programs/simulated-agents.ts";
import { simulatedRuntime } from "./runtime/simulated-runtime.ts";

/** Simulated nodes: pods are ready by rule, our programs run inside this process, and agents are simulated. Needs no rights. */
export function simulatedInfrastructure({
  clock,
  programs: extra,
}: {
  clock: Clock;
  programs?: ProgramTable;
}): Infrastructure {
  const programs = programRunner({ clock, programs: { ...PROGRAMS, ...extra } });
  const runtime = simulatedRuntime({ clock, rules: installedImageRules, runner: programs });
  const services = new NodeServices();
  const agents = new SimulatedAgents();
  return {
    runtime,
    programs,
    podsBecomeReady: true,
    apiAddress: (listening) => listening,
    sockets: () => [],
    admissions: (store) => [services.learn(store), agents],
    nodes: (planned) =>
      planned.map((node) => ({ ...node, annotations: { ...node.annotations, ...simulatedNodeAnnotations() } })),
    attach({ server, profile, platform, log }) {
      programs.attach({
        server,
        addresses: platformAddresses(profile, platform),
        servicesWorkOn: (node) => platformServesClusterIP(profile) || services.workOn(node),
      });
      agents.start({ store: server.store, transport: server.transport, kind: profile.kind, clock, log });
    },
    async close() {
      await runtime.close();
      await agents.stop();
    },
  };
}
