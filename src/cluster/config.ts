/** The environment of this module, read once. */
export interface ClusterEnv {
  /** `$KUBECONFIG`: one file or a list of them. */
  kubeconfig?: string;
  home?: string;
  /** Where the API is, inside a cluster. */
  serviceHost?: string;
  servicePort?: string;
  serviceAccountDir: string;
  /** Where the endpoint map is mounted: the kubelet writes it again when the map changes. */
  endpointMapDir?: string;
  httpsProxy?: string;
  noProxy?: string;
  /** Credential plugins inherit all of it. */
  all: Record<string, string | undefined>;
  /** Standard input is a terminal. */
  terminal: boolean;
}

export function readClusterEnv(): ClusterEnv {
  return clusterEnv(process.env, process.stdin.isTTY === true);
}

/** The same from an environment that is not this process's: that of a container. */
export function clusterEnv(env: Readonly<Record<string, string | undefined>>, terminal: boolean): ClusterEnv {
  return {
    kubeconfig: env["KUBECONFIG"],
    home: env["HOME"],
    // Ours first: it names the API directly, for clusters where nothing serves the service address yet.
    serviceHost: env["ORCHESTRATOR_SERVICE_HOST"] || env["KUBERNETES_SERVICE_HOST"],
    servicePort: env["ORCHESTRATOR_SERVICE_PORT"] || env["KUBERNETES_SERVICE_PORT"],
    serviceAccountDir: "/var/run/secrets/kubernetes.io/serviceaccount",
    endpointMapDir: env["ENDPOINT_MAP_DIR"],
    httpsProxy: env["HTTPS_PROXY"] || env["https_proxy"],
    noProxy: env["NO_PROXY"] || env["no_proxy"],
    all: { ...env },
    terminal,
  };
}
