import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { until } from "./node-lab.ts";

const run = promisify(execFile);
const DAEMONS = "/usr/lib/frr";

/** Why there is no BIRD here; undefined where there is. */
export function whyNoBird(): string | undefined {
  return existsSync("/usr/sbin/bird") ? undefined : "needs bird2";
}

/** Why there is no FRR or no BIRD here; undefined where there are both. */
export function whyNoBgp(): string | undefined {
  const noBird = whyNoBird();
  if (noBird) return noBird;
  return existsSync(`${DAEMONS}/bgpd`) && existsSync(`${DAEMONS}/zebra`) ? undefined : "needs frr";
}

/** A router of another maker: FRR, in a network namespace on the nodes' segment. */
export interface FrrRouter {
  name: string;
  netns: Netns;
  /** Its table of one family, by prefix, with next hops. */
  routes(family: 4 | 6): Promise<Map<string, FrrRoute>>;
  /** State of each session, by the peer's address. */
  sessions(): Promise<Record<string, string>>;
  vtysh(...commands: string[]): Promise<string>;
  close(): Promise<void>;
}

export interface FrrRoute {
  nextHops: string[];
  /** Next hops that it sends packets to. */
  used: string[];
}

interface Place {
  name: string;
  /** With their lengths. */
  addresses: readonly string[];
  /** Where the bridge is that it is plugged into. */
  segment: Netns;
  bridge?: string;
  configuration: readonly string[];
}

export async function frrRouter(place: Place): Promise<FrrRouter> {
  const { name, addresses, segment, bridge = "segment", configuration } = place;
  const kernel = realKernel();
  const netns = kernel.netns.create(`${segment.name}-${name}`);
  const ends = [kernel.netlink(netns), kernel.netlink(segment)] as const;
  const port = `p-${name}`;
  ends[0].addVeth({ name: "eth0", peer: { name: port, netns: segment } });
  ends[1].changeLink(ends[1].link(port)!.index, { up: true, master: ends[1].link(bridge)!.index });
  for (const link of ["lo", "eth0"]) ends[0].changeLink(ends[0].link(link)!.index, { up: true });
  const device = ends[0].link("eth0")!.index;
  for (const address of addresses) ends[0].addAddress({ device, address });
  for (const end of ends) end.close();
  const inside = ["nsenter", `--net=/run/netns/${netns.name}`];
  // Two next hops are two paths, whatever the addresses.
  await run(inside[0]!, [inside[1]!, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1", "net.ipv4.ip_forward=1"]);
  const directory = mkdtempSync(join(tmpdir(), `frr-${name}-`));
  const file = join(directory, "frr.conf");
  writeFileSync(file, `${["frr defaults datacenter", `hostname ${name}`, ...configuration].join("\n")}\n`);
  mkdirSync(join(directory, "vty"));
  await run("chown", ["-R", "frr:frr", directory]);
  const children: ChildProcess[] = [];
  const start = (daemon: string, ...more: string[]) => {
    const common = ["-f", file, "-i", join(directory, `${daemon}.pid`), "-z", join(directory, "zebra.sock")];
    const args = [
      inside[1]!,
      join(DAEMONS, daemon),
      ...common,
      "--vty_socket",
      join(directory, "vty"),
      "-P",
      "0",
      ...more,
    ];
    children.push(spawn(inside[0]!, args, { stdio: "ignore" }));
  };
  const vtysh = async (...commands: string[]) =>
    (await run("vtysh", ["--vty_socket", join(directory, "vty"), ...commands.flatMap((one) => ["-c", one])])).stdout;
  start("zebra");
  await until(
    () => existsSync(join(directory, "zebra.sock")),
    () => `zebra of ${name} does not start`,
  );
  start("bgpd");
  await until(
    () =>
      vtysh("show bgp summary json").then(
        (text) => text.includes("{"),
        () => false,
      ),
    () => `bgpd of ${name} does not start`,
  );
  return {
    ...{ name, netns, vtysh },
    async routes(family) {
      const text = await vtysh(`show bgp ipv${family} unicast json`).catch(() => "{}");
      return readRoutes(JSON.parse(text) as FrrTable);
    },
    async sessions() {
      const { ipv4Unicast = {}, ipv6Unicast = {} } = JSON.parse(await vtysh("show bgp summary json")) as FrrSummary;
      const peers = Object.entries({ ...ipv4Unicast.peers, ...ipv6Unicast.peers });
      return Object.fromEntries(peers.map(([peer, { state }]) => [peer, state]));
    },
    async close() {
      for (const child of children.reverse()) {
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await gone;
      }
      netns.close();
      kernel.netns.delete(netns.name);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface FrrSummary {
  ipv4Unicast?: { peers?: Record<string, { state: string }> };
  ipv6Unicast?: { peers?: Record<string, { state: string }> };
}

interface FrrTable {
  routes?: Record<string, FrrPath[]>;
}

interface FrrPath {
  nexthops?: { ip: string; scope?: string }[];
  multipath?: boolean;
  bestpath?: boolean;
}

function readRoutes({ routes = {} }: FrrTable): Map<string, FrrRoute> {
  const hops = (some: readonly FrrPath[]) =>
    some
      .flatMap(({ nexthops = [] }) => nexthops.filter(({ scope }) => scope !== "link-local").map(({ ip }) => ip))
      .sort();
  return new Map(
    Object.entries(routes).map(([net, paths]) => [
      net,
      { nextHops: hops(paths), used: hops(paths.filter(({ multipath, bestpath }) => multipath || bestpath)) },
    ]),
  );
}
