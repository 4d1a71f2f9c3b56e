import { defineErrors } from "../kit/errors.ts";

const CONFIG = 78;

export const errors = defineErrors({
  CNI_INSTALL_CONFIG: {
    means: "The CNI configuration that cni-install writes to nodes is not a valid list of plugins.",
    example: ["it has no plugins"],
    say: (why: string) => `$CNI_NETWORK_CONFIG is not a list of plugins for nodes: ${why}`,
    fix: () => "set it to a conflist: JSON with name, cniVersion and plugins",
    exitCode: CONFIG,
  },
  CNI_INSTALL_FAILED: {
    means: "The init container that installs the CNI plugin could not write to a directory of the node.",
    example: ["/host/opt/cni/bin/vendor", "read-only file system"],
    say: (path: string, why: string) => `could not write ${path} on the node: ${why}`,
    fix: () => "mount the node's directories of plugins and of their configuration where a container of root can write",
    exitCode: CONFIG,
  },
});
