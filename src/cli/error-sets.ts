/** Every module that declares errors; loading one makes its codes known. A test finds a set that is missing here. */
export const ERROR_SETS: Record<string, () => Promise<unknown>> = {
  "agent/errors.ts": () => import("../agent/errors.ts"),
  "api/schema/json-path.ts": () => import("../api/schema/json-path.ts"),
  "apiserver/http.ts": () => import("../apiserver/http.ts"),
  "apiserver/storage/errors.ts": () => import("../apiserver/storage/errors.ts"),
  "cli/errors.ts": () => import("./errors.ts"),
  "cluster/errors.ts": () => import("../cluster/errors.ts"),
  "cni/errors.ts": () => import("../cni/errors.ts"),
  "controllers/errors.ts": () => import("../controllers/errors.ts"),
  "datastore/errors.ts": () => import("../datastore/errors.ts"),
  "dataplane/ebpf/errors.ts": () => import("../dataplane/ebpf/errors.ts"),
  "dataplane/switchover/errors.ts": () => import("../dataplane/switchover/errors.ts"),
  "dataplane/net/errors.ts": () => import("../dataplane/net/errors.ts"),
  "dataplane/nft/errors.ts": () => import("../dataplane/nft/errors.ts"),
  "dataplane/kube-proxy/errors.ts": () => import("../dataplane/kube-proxy/errors.ts"),
  "flows/errors.ts": () => import("../flows/errors.ts"),
  "flows/preview/errors.ts": () => import("../flows/preview/errors.ts"),
  "flows/query/errors.ts": () => import("../flows/query/errors.ts"),
  "ipam/errors.ts": () => import("../ipam/errors.ts"),
  "kernel/errors.ts": () => import("../kernel/errors.ts"),
  "local/errors.ts": () => import("../local/errors.ts"),
  "local/installed/errors.ts": () => import("../local/installed/errors.ts"),
  "local/platform-profiles/errors.ts": () => import("../local/platform-profiles/errors.ts"),
  "local/programs/errors.ts": () => import("../local/programs/errors.ts"),
  "local/runtime/errors.ts": () => import("../local/runtime/errors.ts"),
  "local/runtime/containerd/errors.ts": () => import("../local/runtime/containerd/errors.ts"),
  "local/runtime/netns/errors.ts": () => import("../local/runtime/netns/errors.ts"),
  "operator/errors.ts": () => import("../operator/errors.ts"),
  "procedures/merge/errors.ts": () => import("../procedures/merge/errors.ts"),
  "procedures/migrations/datastore/errors.ts": () => import("../procedures/migrations/datastore/errors.ts"),
  "procedures/plans/migrations/datastore/errors.ts": () => import("../procedures/plans/migrations/datastore/errors.ts"),
  "procedures/plans/migrations/encapsulation/errors.ts": () =>
    import("../procedures/plans/migrations/encapsulation/errors.ts"),
  "procedures/plans/migrations/operator/errors.ts": () => import("../procedures/plans/migrations/operator/errors.ts"),
  "procedures/plans/upgrade/upgrade-errors.ts": () => import("../procedures/plans/upgrade/upgrade-errors.ts"),
  "releases/errors.ts": () => import("../releases/errors.ts"),
  "procedures/canary/errors.ts": () => import("../procedures/canary/errors.ts"),
  "procedures/actions/errors.ts": () => import("../procedures/actions/errors.ts"),
  "procedures/plans/plan-errors.ts": () => import("../procedures/plans/plan-errors.ts"),
  "procedures/rights/errors.ts": () => import("../procedures/rights/errors.ts"),
  "procedures/observe/errors.ts": () => import("../procedures/observe/errors.ts"),
  "procedures/run/errors.ts": () => import("../procedures/run/errors.ts"),
  "procedures/migrations/errors.ts": () => import("../procedures/migrations/errors.ts"),
  "procedures/resources/errors.ts": () => import("../procedures/resources/errors.ts"),
  "cli/commands/flows/errors.ts": () => import("./commands/flows/errors.ts"),
  "flows/store/errors.ts": () => import("../flows/store/errors.ts"),
  "sidecar/errors.ts": () => import("../sidecar/errors.ts"),
  "aggregated/errors.ts": () => import("../aggregated/errors.ts"),
  "v3api/errors.ts": () => import("../v3api/errors.ts"),
};

/** The guide to read about the errors of a folder or a file; the longest name that fits counts. */
const PAGES: Readonly<Record<string, string>> = {
  "agent/": "docs/guide/troubleshooting.md",
  "aggregated/": "docs/guide/troubleshooting.md",
  "cli/": "docs/guide/vendorctl.md",
  "cluster/": "docs/guide/vendorctl.md",
  "cni/": "docs/guide/troubleshooting.md",
  "dataplane/": "docs/guide/troubleshooting.md",
  "ipam/": "docs/guide/troubleshooting.md",
  "kernel/": "docs/guide/kernels.md",
  "local/": "docs/guide/embedded-cluster.md",
  "apiserver/": "docs/guide/embedded-cluster.md",
  "operator/": "docs/guide/operator.md",
  "procedures/migrations/datastore/": "docs/guide/migrate-datastore.md",
  "procedures/plans/migrations/datastore/": "docs/guide/migrate-datastore.md",
  "procedures/plans/migrations/operator/": "docs/guide/migrate-operator.md",
  "procedures/": "docs/guide/plans-and-runs.md",
  "procedures/merge/": "docs/guide/upgrade.md#your-edits",
  "procedures/plans/upgrade/": "docs/guide/upgrade.md",
  "procedures/canary/": "docs/guide/switch.md#measured-traffic",
  "procedures/plans/": "docs/guide/switch.md",
  "procedures/migrations/": "docs/guide/owner-references.md",
  "procedures/resources/": "docs/guide/resources.md",
  "releases/": "docs/guide/install.md",
};

export async function errorPage(code: string): Promise<string | undefined> {
  for (const [path, load] of Object.entries(ERROR_SETS)) {
    const { errors } = (await load()) as { errors?: object };
    if (errors && code in errors) return pageOf(path);
  }
  return undefined;
}

function pageOf(path: string): string | undefined {
  const [longest] = Object.keys(PAGES)
    .filter((start) => path.startsWith(start))
    .sort((a, b) => b.length - a.length);
  return longest === undefined ? undefined : PAGES[longest];
}
