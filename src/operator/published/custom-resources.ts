import { type Names, vendorNames } from "../../api/names.ts";
import { groupVersion } from "../../api/object.ts";

/** The file of installation step 5: to run eBPF where it is not the default, one line is added to it. */
export function customResourcesFile(names: Names = vendorNames): string {
  return `${HEAD}${installation(
    names,
    `    # The data plane of Linux nodes (default: the one that runs; on a new cluster BPF where that is the default of the kind of
    # cluster, else Nftables). To enable eBPF, add this line:
    #   linuxDataplane: ${names.dataplanes.ebpf}
    #
    # Whether the operator disables and restores kube-proxy as the data plane changes. Disabled: you do it, as the last step.
    serviceProxyManagement: Enabled
    # IP pools of pods (default: the cluster's pod CIDRs).
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
    # eBPF always serves host ports; the setting is of the nftables data plane.
    hostPorts: null
    # The operator disables kube-proxy when every node has verified that eBPF serves Services, and restores it before it disables eBPF.
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
${resource(kinds.apiServer.kind)}# Flow logs, and the flow UI. Uncomment both, or only the first.
${off(kinds.flowLogs.kind)}${off(kinds.flowUI.kind)}`;
}
