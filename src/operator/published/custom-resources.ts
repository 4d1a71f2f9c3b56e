import { type Names, vendorNames } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";

/** The file of installation step 5: to run eBPF where it is not the default, one line is added to it. */
export function customResourcesFile(names: Names = vendorNames): string {
  return `${HEAD}${installation(
    names,
    `    # The data plane of Linux nodes. Left out, it is what runs already; on a new cluster eBPF (BPF) where that is the default for the
    # kind of cluster, else Nftables. To ask for eBPF, add this line, here and as it is:
    #   linuxDataplane: ${names.dataplanes.ebpf}
    #
    # Whether the operator parks and restores the service proxy on its own as the data plane changes. Disabled: you do it, last of all.
    serviceProxyManagement: Disabled
    # Pools of pod addresses. Left out, they are made from the pod prefixes the cluster was made with.
    # ipPools:
    #   - cidr: 192.168.0.0/16
    #     encapsulation: VXLANCrossSubnet
    #     natOutgoing: Enabled
`,
  )}${rest(names)}`;
}

/** The same for eBPF from the start, with the service proxy looked after. */
export function customResourcesBpfFile(names: Names = vendorNames): string {
  return `${HEAD}${installation(
    names,
    `    linuxDataplane: ${names.dataplanes.ebpf}
    # eBPF serves the ports of pods itself, so the port mapper is off.
    hostPorts: null
    # The operator parks the service proxy when every node has proved that eBPF serves its services, and brings it back before going back.
    serviceProxyManagement: Enabled
`,
  )}${rest(names)}`;
}

const HEAD = `# What the operator installs. Edit, then: kubectl create -f this file. Progress: kubectl get vendorstatus -w
# Generated from src/operator/published. Do not edit it in the repository: run \`npm run generate\`.
`;

function installation({ groups, kinds, singleton, variant }: Names, network: string): string {
  return `---
apiVersion: ${groupVersion(groups.operator)}
kind: ${kinds.installation.kind}
metadata:
  name: ${singleton}
spec:
  variant: ${variant}
  vendorNetwork:
${network}`;
}

function rest({ groups, kinds, singleton }: Names): string {
  const resource = (kind: string) =>
    `apiVersion: ${groupVersion(groups.operator)}\nkind: ${kind}\nmetadata:\n  name: ${singleton}\nspec: {}\n`;
  const off = (kind: string) => `---\n${resource(kind)}`.replace(/^(?=.)/gm, "# ");
  return `---
# The aggregated v3 API: kubectl for policies, pools and host endpoints.
${resource(kinds.apiServer.kind)}# Flow logs, and the page that shows them. Uncomment both, or only the first.
${off(kinds.flowLogs.kind)}${off(kinds.flowUI.kind)}`;
}
