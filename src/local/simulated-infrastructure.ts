import { onPaperAnnotations } from "../api/protocol/paper-node.ts";
import type { Clock } from "../kit/clock.ts";
import type { Ground } from "./ground.ts";
import { installedImageRules } from "./installed/image-rules.ts";
import { NodeServices } from "./programs/node-services.ts";
import { PaperAgents } from "./programs/paper-agents.ts";
import { platformAddresses, platformServesClusterIP } from "./programs/platform-addresses.ts";
import { programRunner } from "./programs/program-runner.ts";
import { PROGRAMS, type ProgramTable } from "./programs/program-table.ts";
import { paperRuntime } from "./runtime/paper-runtime.ts";

/** Nodes on paper: pods are ready by rule, our programs run inside this process, and agents are played. Needs no rights. */
export function paperGround({ clock, programs: extra }: { clock: Clock; programs?: ProgramTable }): Ground {
  const programs = programRunner({ clock, programs: { ...PROGRAMS, ...extra } });
  const runtime = paperRuntime({ clock, rules: installedImageRules, runner: programs });
  const services = new NodeServices();
  const agents = new PaperAgents();
  return {
    runtime,
    programs,
    podsBecomeReady: true,
    apiAddress: (listening) => listening,
    sockets: () => [],
    admissions: (store) => [services.learn(store), agents],
    nodes: (planned) =>
      planned.map((node) => ({ ...node, annotations: { ...node.annotations, ...onPaperAnnotations() } })),
    attach({ server, personality, platform, log }) {
      programs.attach({
        server,
        addresses: platformAddresses(personality, platform),
        servicesWorkOn: (node) => platformServesClusterIP(personality) || services.workOn(node),
      });
      agents.start({ store: server.store, transport: server.transport, kind: personality.kind, clock, log });
    },
    async close() {
      await runtime.close();
      await agents.stop();
    },
  };
}
