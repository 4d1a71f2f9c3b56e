import { expect, it } from "vitest";
import { mergeImages } from "./image-parts.ts";

it.each<[what: string, base: string, theirs: string, ours: string, merged: string | undefined]>([
  [
    "a mirror of a release that moved to another registry",
    "docker.io/calico/cni:v3.26.5",
    "registry.corp.example/mirror/calico/cni:v3.26.5",
    "quay.io/calico/cni:v3.31.3",
    "registry.corp.example/mirror/calico/cni:v3.31.3",
  ],
  [
    "a new name",
    "docker.io/calico/pod2daemon:v1",
    "r.example:5000/p2d/pod2daemon:v1",
    "quay.io/calico/node:v2",
    "r.example:5000/p2d/node:v2",
  ],
  [
    "a new path",
    "docker.io/calico/node:v1",
    "r.example/calico/node:v1",
    "quay.io/tigera/node:v2",
    "r.example/tigera/node:v2",
  ],
  ["no host", "calico/node:v1", "r.example/calico/node:v1", "docker.io/calico/node:v2", "r.example/calico/node:v2"],
  ["another tag", "docker.io/calico/node:v1", "docker.io/calico/node:v1-patched", "quay.io/calico/node:v2", undefined],
])("%s", (_what, base, theirs, ours, merged) => {
  expect(mergeImages(base, theirs, ours)).toBe(merged);
});
