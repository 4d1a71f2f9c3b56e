import { readFileSync } from "node:fs";
import { release } from "node:os";
import { dirname, join } from "node:path";
import { vendorNames } from "../api/names.ts";
import { realKernel } from "../kernel/kernel.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { stateDirectory } from "./config.ts";
import type { AttachedCluster, HostPort, Infrastructure } from "./infrastructure.ts";
import type { PlatformProfile, PlatformProfileOptions } from "./platform-profile.ts";
import { addressIn } from "./platform-profiles/server-names.ts";
import { requestToken } from "./programs/account-transport.ts";
import { platformServesClusterIP } from "./programs/platform-addresses.ts";
import { referencesOf } from "./programs/program-runner.ts";
import { errors as containerErrors } from "./runtime/containerd/errors.ts";
import type { BuiltImage } from "./runtime/containerd/image-build.ts";
import { errors } from "./runtime/netns/errors.ts";
import { ServiceProxy } from "./runtime/netns/kube-proxy/service-proxy.ts";
import { claim, removeAll } from "./runtime/netns/leftovers.ts";
import { processPods, realNodes } from "./runtime/netns/netns-runtime.ts";
import type { NodePod, PodContext, PodMaker } from "./runtime/netns/node-pod.ts";
import { packageRoot, unpackImage } from "./runtime/netns/our-image.ts";
import { placesOf, releaseDirectory } from "./runtime/netns/places.ts";
import { runCommand } from "./runtime/netns/run-command.ts";
import { createSegment, routerIn } from "./runtime/netns/segment.ts";
import { ServiceListeners } from "./runtime/netns/service-listeners.ts";
import { whyNotReal } from "./runtime/netns/why-not-real.ts";
import type { NodeSpec, RealRuntime } from "./runtime/node-runtime.ts";

export interface NetnsInfrastructureOptions {
  name: string;
  profile: PlatformProfile;
  /** By version, a built checkout. */
  releases: Readonly<Record<string, string>>;
  runtime: RealRuntime;
  /** What a person should know of how it came up. */
  note(text: string): void;
  clock: Clock;
  log: Log;
}

/** Where the API server is on the nodes' own network: nothing else is there that could have taken the port. */
const API_PORT = 6443;
const API_SERVICE_PORT = 443;

/** This machine's kernel: nodes are namespaces, pods are processes, and what they send are packets. */
export async function netnsInfrastructure({
  name,
  profile,
  releases,
  runtime: kind,
  note,
  clock,
  log,
}: NetnsInfrastructureOptions): Promise<Infrastructure> {
  const why = await whyNotReal(realKernel);
  if (why !== undefined) throw errors.REAL_NODES_IMPOSSIBLE(why);
  const image = kind === "containerd" ? await builtImage(note) : undefined;
  const runtimeVersion = image ? await containerdVersion() : "vendor://namespaces";
  const kernel = realKernel();
  const places = placesOf(name, kernel.cgroup.root() as string);
  await claim(kernel, places);
  const router = routerIn(firstNetwork(profile, name));
  const hosts = hostsFile(profile, name, router);
  let attached: (AttachedCluster & { proxy: ServiceProxy }) | undefined;
  try {
    await unpackImage(places.image);
    for (const [version, checkout] of Object.entries(releases))
      await unpackImage(releaseDirectory(places.image, version), checkout);
    const segment = createSegment(kernel, places);
    const clusterIP = addressIn(profile.serviceCidrs[0] as string, 1);
    if (platformServesClusterIP(profile)) segment.addAddress(clusterIP);
    const context = () => worldOf(attached as AttachedCluster & { proxy: ServiceProxy });
    const pods: PodMaker<NodePod> = image
      ? (await import("./runtime/containerd/containerd-pod.ts")).containerPods(image, context)
      : processPods(kernel, context);
    const runtime = realNodes({
      ...{ kind, kernel, places, segment, hosts, also: outsideRoot(process.execPath), pods },
      cgroupPath: vendorNames.paths.cgroupV2,
      runsContainers: image !== undefined,
    });
    const doors = new ServiceListeners(kernel, () => runtime.pods());
    const worldOf = ({ client, proxy }: AttachedCluster & { proxy: ServiceProxy }): PodContext => ({
      ...{ kernel, clock, log, hosts, releases: new Set(Object.keys(releases)) },
      references: referencesOf(client),
      token: (pod) => requestToken(client, pod),
      apiService: { host: clusterIP, port: API_SERVICE_PORT },
      serveServices: (machine, pod) => proxy.serve(machine, pod),
    });
    return {
      runtime,
      programs: { kill: (uid) => runtime.kill(uid), resolveService: doors.resolver(() => attached?.server.store) },
      podsBecomeReady: false,
      apiAddress: () => ({ host: router, port: API_PORT }),
      sockets: (platform) =>
        portsOf(profile, platform).map((port) => ({
          ...{ host: router, port },
          fd: kernel.netns.bind(segment.netns, { kind: "stream", address: "::", port }),
        })),
      admissions: () => [],
      nodes: (planned) => planned.map((spec) => asThisMachine(spec, runtimeVersion)),
      attach(cluster) {
        attached = { ...cluster, proxy: new ServiceProxy({ kernel, client: cluster.client, clock, log }) };
      },
      async close() {
        doors.close();
        await attached?.proxy.stop();
        await runtime.close();
      },
    };
  } catch (error) {
    await removeAll(kernel, places);
    throw error;
  }
}

async function builtImage(note: (text: string) => void): Promise<BuiltImage> {
  const { whyNoContainers } = await import("./runtime/containerd/why-no-containers.ts");
  const why = await whyNoContainers(realKernel);
  if (why !== undefined) throw containerErrors.CONTAINERS_IMPOSSIBLE(why);
  const { buildImage } = await import("./runtime/containerd/image-build.ts");
  return await buildImage({ root: packageRoot(), cache: join(stateDirectory(), "images"), note });
}

/** `containerd github.com/containerd/containerd 1.6.20 COMMIT` */
async function containerdVersion(): Promise<string> {
  const { out } = await runCommand(["containerd", "--version"]);
  return `containerd://${out.trim().split(" ")[2] ?? "unknown"}`;
}

/** The first subnet is the first node's, whatever else is chosen. */
function firstNetwork(profile: PlatformProfile, name: string): string {
  const [first] = profile.nodes(smallest(name));
  return first?.networks?.[0] as string;
}

function smallest(name: string): PlatformProfileOptions {
  const none = { oldNodes: 0, windowsNodes: 0, dualStack: false, proxy: undefined };
  return { name, nodes: 1, apiAddress: { host: "", port: API_PORT }, ...none };
}

/** There is no DNS server on real nodes: names of the API server are in the hosts file, as the platform's own name server would resolve them. */
function hostsFile(profile: PlatformProfile, name: string, router: string): string {
  const { host } = profile.endpoint(smallest(name));
  const clusterIP = addressIn(profile.serviceCidrs[0] as string, 1);
  return [
    "127.0.0.1 localhost",
    "::1 localhost",
    `${clusterIP} kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local`,
    ...(/^[\d.]+$/.test(host) || host.includes(":") ? [] : [`${router} ${host}`]),
    "",
  ].join("\n");
}

/** Where the API server is, where the platform says it is, and where the platform serves its cluster IP. */
function portsOf(profile: PlatformProfile, platform: PlatformProfileOptions): number[] {
  const endpoint: HostPort = profile.endpoint(platform);
  return [...new Set([API_PORT, endpoint.port, ...(platformServesClusterIP(profile) ? [API_SERVICE_PORT] : [])])];
}

/** What a node says of its system is what the system says. */
function asThisMachine(spec: NodeSpec, containerRuntimeVersion: string): NodeSpec {
  const name = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "Linux";
  return {
    ...spec,
    kernelVersion: release(),
    osImage: name,
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    containerRuntimeVersion,
  };
}

/** A program on another file system than the root's is not in the image; the way to it is added. */
function outsideRoot(path: string): string[] {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "");
  const isOutside = mounts.some((mount) => mount.length > 1 && `${dirname(path)}/`.startsWith(`${mount}/`));
  return isOutside ? [path] : [];
}
