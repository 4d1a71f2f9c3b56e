import { defineErrors } from "../../../kit/errors.ts";

const UNAVAILABLE = 69;

export const errors = defineErrors({
  CONTAINERS_IMPOSSIBLE: {
    args: ["why"],
    say: (why: string) => `containers cannot be run here: ${why}`,
    fix: () =>
      "as root on Linux: apt-get install containerd runc buildah debootstrap; or run pods as processes: --runtime netns",
    exitCode: UNAVAILABLE,
  },
  IMAGE_NOT_BUILT: {
    args: ["step", "why"],
    say: (step: string, why: string) => `the image could not be built (${step}): ${why}`,
    fix: () => "it is built from the Containerfile, with packages of Debian and of npm: check that both can be reached",
    exitCode: UNAVAILABLE,
  },
  CONTAINER_RUNTIME_FAILED: {
    args: ["node", "why"],
    say: (node: string, why: string) => `containerd does not run on node ${node}: ${why}`,
    fix: () => "its own words are above; the whole log is /var/log/containerd.log of the node",
  },
});
