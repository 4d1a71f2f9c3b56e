import type { ClusterEnv } from "./config.ts";
import type { ExecPlugin } from "./connection.ts";
import type { Section } from "./kubeconfig-file.ts";

const VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"] as const;
const MODES = ["Never", "IfAvailable", "Always"] as const;
/** The cluster's extension whose content is passed on to plugins. */
const PLUGIN_EXTENSION = "client.authentication.k8s.io/exec";

/** `users[].user.exec` of a kubeconfig. */
export function execPluginOf(exec: Section, cluster: Section, env: ClusterEnv): ExecPlugin {
  const given = exec.text("apiVersion");
  const apiVersion = VERSIONS.find((version) => version === given);
  if (apiVersion === undefined) throw exec.malformed("apiVersion", `exec.apiVersion must be ${VERSIONS.join(" or ")}`);
  const command = exec.text("command");
  if (command === undefined) throw exec.malformed(undefined, "exec has no command");
  const mode = exec.text("interactiveMode") ?? (apiVersion.endsWith("/v1beta1") ? "IfAvailable" : undefined);
  const interactiveMode = MODES.find((known) => known === mode);
  if (interactiveMode === undefined) {
    throw exec.malformed("interactiveMode", `exec.interactiveMode must be ${MODES.join(", ")}`);
  }
  const added = exec.sections("env").map((each) => [each.text("name") ?? "", each.text("value") ?? ""]);
  return {
    apiVersion,
    // A bare name is looked up on the PATH; anything with a slash is relative to the kubeconfig.
    command: command.includes("/") ? (exec.path("command") as string) : command,
    args: exec.texts("args"),
    env: { ...env.all, ...Object.fromEntries(added) },
    interactiveMode,
    terminal: env.terminal,
    installHint: exec.text("installHint"),
    ...(exec.flag("provideClusterInfo") ? { cluster: clusterInfo(cluster) } : {}),
  };
}

function clusterInfo(cluster: Section): Record<string, unknown> {
  const ca = cluster.content("certificate-authority");
  const extension = cluster.sections("extensions").find((each) => each.text("name") === PLUGIN_EXTENSION);
  const info = {
    server: cluster.text("server"),
    "tls-server-name": cluster.text("tls-server-name"),
    "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify") || undefined,
    "certificate-authority-data": ca === undefined ? undefined : Buffer.from(ca).toString("base64"),
    "proxy-url": cluster.text("proxy-url"),
    config: extension?.value("extension"),
  };
  return Object.fromEntries(Object.entries(info).filter(([, value]) => value !== undefined));
}
