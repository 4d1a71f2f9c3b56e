import type { Net } from "../model.ts";
import { isV4 } from "../nets.ts";
import type { BgpModel, BgpSession } from "./bgp-model.ts";
import { exportFilter, importFilter, inside, prefixFunctions } from "./bird-filters.ts";

/** By its protocol number, 12, and this metric the kernel's routes of our daemon are known. */
export const BIRD_ROUTES = { protocol: 12, metric: 80 } as const;

/** How long a peer that says nothing counts as there. */
const HOLD_SECONDS = 90;
/** How long a daemon that was started again waits for all peers before it removes what none of them announced. */
const RECOVERY_SECONDS = 60;

const LOG_CLASSES: Record<BgpModel["log"], readonly string[]> = {
  Fatal: ["fatal", "bug"],
  Error: ["fatal", "bug", "error", "auth"],
  Warning: ["fatal", "bug", "error", "auth", "warning"],
  Info: ["fatal", "bug", "error", "auth", "warning", "info", "remote"],
  Debug: ["fatal", "bug", "error", "auth", "warning", "info", "remote", "trace", "debug"],
};

/** The model in the words of BIRD 2. The same model is the same text. */
export function birdConfig(model: BgpModel): string {
  const families = ([4, 6] as const).flatMap((family) => [...prefixFunctions(model, family), ...tables(model, family)]);
  return `${[
    `# Node ${model.node}. Written by vendor-node: changes are lost.`,
    `log stderr { ${LOG_CLASSES[model.log].join(", ")} };`,
    ...(model.log === "Debug" ? ["debug protocols all;"] : []),
    `router id ${model.routerId};`,
    `graceful restart wait ${RECOVERY_SECONDS};`,
    "protocol device { scan time 5; }",
    "protocol direct links {",
    "  ipv4;",
    "  ipv6;",
    `  interface ${[...model.ignoredInterfaces.map((name) => `-"${name}"`), '"*"'].join(", ")};`,
    "}",
    ...families,
    ...model.sessions.flatMap((session) => [
      ...importFilter(session),
      ...exportFilter(session),
      ...protocol(model, session),
    ]),
  ].join("\n")}\n`;
}

/** What is announced, gateways of peers, and the kernel's table. */
function tables(model: BgpModel, family: 4 | 6): string[] {
  const of = <T>(items: readonly T[], net: (item: T) => Net) =>
    items.filter((item) => isV4(net(item)) === (family === 4));
  const tunnelled = of(model.pools, ({ net }) => net)
    .filter((pool) => pool.tunnelled)
    .map(({ net }) => net);
  return [
    `protocol static announced${family} {`,
    `  ipv${family};`,
    ...of(model.announced, (net) => net).map((net) => `  route ${net} blackhole;`),
    "}",
    `protocol static gateways${family} {`,
    `  ipv${family};`,
    ...of(model.gateways, ({ net }) => net).map(({ net, via }) => `  route ${net} via ${via};`),
    "}",
    `protocol kernel kernel${family} {`,
    "  learn;",
    "  scan time 10;",
    `  metric ${BIRD_ROUTES.metric};`,
    "  merge paths on;",
    // After a restart, what the kernel has stays until the sessions are back.
    "  graceful restart on;",
    `  ipv${family} {`,
    "    import filter {",
    // The agent's own: they lead to pods, never to a next hop.
    "      if krt_source = 80 then reject;",
    "      accept;",
    "    };",
    "    export filter {",
    `      if proto = "gateways${family}" then accept;`,
    "      if source != RTS_BGP then reject;",
    ...inside(tunnelled, "      ", "reject"),
    ...inside(
      of(model.serviceRanges, (net) => net),
      "      ",
      "reject",
    ),
    "      accept;",
    "    };",
    "  };",
    "}",
  ];
}

function protocol(model: BgpModel, session: BgpSession): string[] {
  const { family, reflectorClusterId: cluster, ttlSecurity, nextHop } = session;
  const local = session.localAddress === null ? "" : `${session.localAddress} `;
  return [
    `protocol bgp ${session.name} {`,
    `  local ${local}port ${session.localPort} as ${session.localAsNumber};`,
    `  neighbor ${session.address} port ${session.port} as ${session.asNumber};`,
    ...(model.strictBind && session.localAddress !== null ? ["  strict bind yes;"] : []),
    ...(ttlSecurity === null ? ["  multihop;"] : [`  multihop ${ttlSecurity};`, "  ttl security on;"]),
    ...(session.password === null ? [] : [`  password "${session.password}";`]),
    ...(session.allowedLocalAs === 0 ? [] : [`  allow local as ${session.allowedLocalAs};`]),
    ...(cluster === null ? [] : ["  rr client;", `  rr cluster id ${cluster};`]),
    `  hold time ${HOLD_SECONDS};`,
    "  graceful restart on;",
    `  graceful restart time ${session.restartSeconds};`,
    "  connect delay time 1;",
    "  connect retry time 5;",
    "  error wait time 2, 30;",
    `  ipv${family} {`,
    `    import filter import_${session.name};`,
    `    export filter export_${session.name};`,
    ...(nextHop === "auto" ? [] : [`    next hop ${nextHop};`]),
    "    gateway recursive;",
    "  };",
    "}",
  ];
}
