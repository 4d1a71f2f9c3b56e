export type MethodName = "vendorctl" | "kubectl" | "chart";

/** What `tools/test-e2e.mjs` read from its flags. */
export interface Settings {
  kubeconfig: string;
  context?: string;
  /** Of the test's own pods; it must have node. */
  image?: string;
  /** For eBPF, where it cannot be detected. */
  apiServer?: string;
  /** Run with the name of a node as its last argument. */
  rebootCommand?: string;
  methods: MethodName[];
  /** Leaves the last installation in place. */
  keep: boolean;
}

export function readSettings(): Settings {
  const text = process.env["E2E_SETTINGS"];
  if (text === undefined) throw new Error("no cluster is given: run npm run test:e2e -- --kubeconfig FILE");
  return JSON.parse(text) as Settings;
}
