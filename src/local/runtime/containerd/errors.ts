import { defineErrors } from "../../../kit/errors.ts";

const UNAVAILABLE = 69;

export const errors = defineErrors({
  CONTAINERS_IMPOSSIBLE: {
    means: "--runtime containerd needs programs and rights that this machine does not have.",
    example: ["runc is not installed"],
    say: (why: string) => `containers cannot be run here: ${why}`,
    fix: () =>
      "as root on Linux: apt-get install containerd runc buildah debootstrap; or run pods as processes: --runtime netns",
    exitCode: UNAVAILABLE,
  },
  IMAGE_NOT_BUILT: {
    means: "--runtime containerd builds the image of the service first, and a step of it failed.",
    example: ["npm ci", "no network"],
    say: (step: string, why: string) => `the image could not be built (${step}): ${why}`,
    fix: () => "it is built from the Containerfile, with packages of Debian and of npm: check that both can be reached",
    exitCode: UNAVAILABLE,
  },
  CONTAINER_RUNTIME_FAILED: {
    means: "The container runtime of an embedded node did not start or ended.",
    example: ["node-a", "exit status 1"],
    say: (node: string, why: string) => `containerd does not run on node ${node}: ${why}`,
    fix: () => "its own words are above; the whole log is /var/log/containerd.log of the node",
  },
});
