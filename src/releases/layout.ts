/** What follows from how a release was installed. */
export interface Layout {
  by: "operator" | "manifest";
  datastore: "api" | "etcd";
  /** What connects the pods: the service, a separate overlay in addition, or another plugin altogether. */
  networking: "own" | "overlay" | "foreign";
}
