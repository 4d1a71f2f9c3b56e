import { Access } from "../aggregated/access.ts";
import { serveAggregated, untilDone } from "../aggregated/serve.ts";
import { TierAccess } from "../aggregated/tier-access.ts";
import { v3Kinds } from "../aggregated/v3-kinds.ts";
import { Translator } from "../api/resources/v3-translate.ts";
import { parseVersion } from "../api/tables/version.ts";
import type { Transport } from "../api/transport.ts";
import { Documents } from "../apiserver/documents.ts";
import { Registry } from "../apiserver/registry.ts";
import { type Client, createClient } from "../cluster/client.ts";
import type { Program, ProgramContext } from "../cluster/program.ts";
import { type Clock, systemClock } from "../kit/clock.ts";
import { programMetrics } from "../kit/process-metrics.ts";
import { apiServerMetrics } from "./apiserver-metrics.ts";
import { Backend } from "./backend.ts";
import { createBuiltIns } from "./built-ins.ts";
import { readV3ApiConfig } from "./config.ts";
import { Front } from "./front.ts";
import { Guards } from "./guards.ts";
import { missingDefinitions } from "./missing-definitions.ts";
import { Warnings } from "./warnings.ts";

/** `vendor apiserver`: the aggregated API `vendor.io/v3`, a front over the stored resources of the main API server. */
export const apiServerProgram: Program = async (world) => {
  const { env, clock = systemClock } = world;
  const config = readV3ApiConfig(env);
  const transport = world.transport();
  const client = createClient(transport, { userAgent: "vendor-apiserver" });
  try {
    const state = { builtIn: false };
    const front = assemble(world, clock, config.version, transport, () => state.builtIn);
    await serveAggregated(world, {
      ...{ front, client, port: config.port, name: "vendor.io/v3" },
      async onceServed() {
        state.builtIn = (await untilDone(world, "built-in tiers", () => builtIns(client, config.version))) ?? false;
      },
    });
  } finally {
    transport.close();
  }
};

function assemble(
  world: ProgramContext,
  clock: Clock,
  version: string,
  transport: Transport,
  builtIn: () => boolean,
): Front {
  const backend = new Backend(transport);
  const kinds = v3Kinds(version);
  const metrics = programMetrics();
  const counts = apiServerMetrics(metrics);
  const access = new Access(transport, clock, () => counts.accessReviews.add());
  const registry = new Registry();
  registry.add(kinds.map(({ served }) => served));
  const { major = 0, minor = 0 } = parseVersion(version) ?? {};
  const documents = new Documents(
    registry,
    { major: String(major), minor: String(minor), gitVersion: version },
    () => ({ subresources: {}, foreign: [] }),
  );
  const parts = {
    kinds,
    backend,
    translator: new Translator(kinds, version),
    access,
    tiers: new TierAccess(access, kinds),
    guards: new Guards(backend, kinds),
    warnings: new Warnings(backend, kinds),
    now: () => new Date(clock.now()),
    stopping: world.signal,
  };
  const ready = {
    definitions: () => missingDefinitions(backend, kinds),
    "built-ins": () => (builtIn() ? undefined : "the built-in tiers do not exist yet"),
  };
  return new Front(parts, { documents, metrics, counts, ready });
}

async function builtIns(client: Client, version: string): Promise<true> {
  await createBuiltIns(client, v3Kinds(version));
  return true;
}
