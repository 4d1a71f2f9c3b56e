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

/** Every variable `vendor cni-install` reads, and what it is. */
export const INSTALL_VARIABLES = {
  CNI_BIN_DIR: "the node's directory of plugins, as the container sees it (default: /host/cni/bin)",
  CNI_BIN_HOST_DIR: "the same directory as the node sees it (default: /opt/cni/bin)",
  CNI_CONF_DIR: "the node's directory of CNI configurations (default: /host/cni/conf)",
  CNI_CONF_NAME: "file name of the configuration (default: 10-vendor.conflist)",
  CNI_NETWORK_CONFIG:
    "the conflist; __KUBERNETES_NODE_NAME__ and __CNI_MTU__ in it are replaced by $NODENAME and $CNI_MTU (required)",
  CNI_MTU: "what __CNI_MTU__ stands for; 0: the agent finds it (default: 0)",
  CNI_SOCKET: "socket of the agent (default: as the conflist says)",
  NODENAME: "name of the node",
  STAY: "true: the container stays, and writes again what is removed from the node (default: false)",
} as const;

/** The environment of `vendor cni-install`. */
export interface InstallConfig {
  /** The node's directory of plugins, as this container sees it. */
  binDir: string;
  /** The same directory as the node sees it: the plugin's first line names its interpreter there. */
  binHostDir: string;
  confDir: string;
  confName: string;
  /** The conflist, its placeholders replaced. */
  networkConfig: string;
  /** Where the agent listens, if it is not where the conflist says. */
  socket: string | undefined;
  /** Whether the program goes on after it has installed the plugin. */
  stays: boolean;
}

type InstallEnv = Readonly<Partial<Record<keyof typeof INSTALL_VARIABLES, string | undefined>>>;

export function readInstallConfig(env: InstallEnv = process.env): InstallConfig {
  const binDir = env["CNI_BIN_DIR"] || "/host/cni/bin";
  return {
    binDir,
    binHostDir: env["CNI_BIN_HOST_DIR"] || (binDir === "/host/cni/bin" ? "/opt/cni/bin" : binDir),
    confDir: env["CNI_CONF_DIR"] || "/host/cni/conf",
    confName: env["CNI_CONF_NAME"] || "10-vendor.conflist",
    networkConfig: (env["CNI_NETWORK_CONFIG"] || "")
      .replaceAll("__KUBERNETES_NODE_NAME__", env["NODENAME"] ?? "")
      .replaceAll("__CNI_MTU__", env["CNI_MTU"] || "0"),
    socket: env["CNI_SOCKET"] || undefined,
    stays: env["STAY"] === "true",
  };
}
