/** What follows from how a release was installed. */
export interface Layout {
  by: "operator" | "manifest";
  datastore: "api" | "etcd";
  /** Who connects the pods: the service, a separate overlay beside it, or somebody else altogether. */
  networking: "own" | "overlay" | "foreign";
}
