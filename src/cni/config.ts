/** What the runtime passes to the plugin in addition to its standard input. */
export interface PluginEnv {
  command: string;
  containerId: string;
  netns: string;
  ifname: string;
  /** `KEY=VALUE;KEY=VALUE`. */
  args: string;
}

type Env = Readonly<Record<string, string | undefined>>;

export function readPluginEnv(env: Env = process.env): PluginEnv {
  return {
    command: env["CNI_COMMAND"] ?? "",
    containerId: env["CNI_CONTAINERID"] ?? "",
    netns: env["CNI_NETNS"] ?? "",
    ifname: env["CNI_IFNAME"] ?? "",
    args: env["CNI_ARGS"] ?? "",
  };
}

/** The environment of `vendor cni-install`. */
export interface InstallConfig {
  /** The node's directory of plugins, as this container sees it. */
  binDir: string;
  /** The same directory as the node sees it: the plugin's first line names its interpreter there. */
  binHostDir: string;
  confDir: string;
  confName: string;
  /** The conflist, word for word. */
  networkConfig: string;
  /** Where the agent listens, if it is not where the conflist says. */
  socket: string | undefined;
}

export function readInstallConfig(env: Env = process.env): InstallConfig {
  const binDir = env["CNI_BIN_DIR"] || "/host/cni/bin";
  return {
    binDir,
    binHostDir: env["CNI_BIN_HOST_DIR"] || (binDir === "/host/cni/bin" ? "/opt/cni/bin" : binDir),
    confDir: env["CNI_CONF_DIR"] || "/host/cni/conf",
    confName: env["CNI_CONF_NAME"] || "10-vendor.conflist",
    networkConfig: env["CNI_NETWORK_CONFIG"] || "",
    socket: env["CNI_SOCKET"] || undefined,
  };
}
