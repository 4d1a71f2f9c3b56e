import { createHash } from "node:crypto";

/** Where everything of one cluster's real nodes is. By its name alone, so that a later process finds what a killed one left. */
export interface Places {
  readonly cluster: string;
  /** Its files: what nodes are mounted on, the image, who owns it. */
  readonly directory: string;
  /** Below the root of the unified hierarchy. */
  readonly cgroup: string;
  readonly image: string;
  readonly owner: string;
  /** Of volumes: all nodes share it. */
  readonly disks: string;
  /** What a node's file system is built on. */
  node(name: string): string;
  nodeCgroup(name: string): string;
  /** Names of network namespaces: `v-CLUSTER.NODE`. A cluster's name has no dot, so no cluster takes another's for its own. */
  netns(name: string): string;
  owns(netns: string): boolean;
}

/** Names no node can have. */
export const SEGMENT = "_segment";
export const OUTSIDE = "_outside";

const BASE = "/run/vendorctl";

export function placesOf(cluster: string, cgroupRoot: string): Places {
  const directory = `${BASE}/${cluster}`;
  const cgroup = `${cgroupRoot}/v-${cluster}`;
  return {
    cluster,
    directory,
    cgroup,
    image: `${directory}/image`,
    owner: `${directory}/owner`,
    disks: `${directory}/disks`,
    node: (name) => `${directory}/nodes/${name}`,
    nodeCgroup: (name) => `${cgroup}/${name}`,
    netns: (name) => `v-${cluster}.${name}`,
    owns: (netns) => netns.startsWith(`v-${cluster}.`),
  };
}

/** Where an image has the files of another release, which containers of that version see in place of its own. */
export function releaseDirectory(image: string, version: string): string {
  return `${image}/releases/${version}`;
}

/** The name of a pod's network namespace on its node; the same every time, so that a second attempt finds the first. */
export function podNetns(uid: string): string {
  return `cni-${createHash("sha256").update(uid).digest("hex").slice(0, 24)}`;
}
