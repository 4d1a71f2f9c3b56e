/** Every module that declares errors; loading one makes its codes known. A test finds a set that is missing here. */
export const ERROR_SETS: Record<string, () => Promise<unknown>> = {
  "api/json-path.ts": () => import("../api/json-path.ts"),
  "apiserver/http.ts": () => import("../apiserver/http.ts"),
  "apiserver/storage/errors.ts": () => import("../apiserver/storage/errors.ts"),
  "cli/errors.ts": () => import("./errors.ts"),
  "cluster/errors.ts": () => import("../cluster/errors.ts"),
  "controllers/errors.ts": () => import("../controllers/errors.ts"),
  "dataplane/ebpf/errors.ts": () => import("../dataplane/ebpf/errors.ts"),
  "flows/errors.ts": () => import("../flows/errors.ts"),
  "kernel/errors.ts": () => import("../kernel/errors.ts"),
  "local/errors.ts": () => import("../local/errors.ts"),
  "local/installed/errors.ts": () => import("../local/installed/errors.ts"),
  "local/personalities/errors.ts": () => import("../local/personalities/errors.ts"),
  "local/programs/errors.ts": () => import("../local/programs/errors.ts"),
  "local/runtime/errors.ts": () => import("../local/runtime/errors.ts"),
  "operator/errors.ts": () => import("../operator/errors.ts"),
  "v3api/errors.ts": () => import("../v3api/errors.ts"),
};
