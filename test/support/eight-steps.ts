import type { ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import { VERSION } from "../../src/api/tables/release.ts";

/** A line that somebody types, and what they then see; it is typed again until they do. */
export interface TypedLine {
  line: string;
  shows: RegExp;
}

export interface TypedStep {
  title: string;
  lines: TypedLine[];
}

/** The cluster's name is part of the addresses that its platform gives. */
export const CLUSTER = "steps";

const ADDRESS: Record<ClusterKind, readonly [host: string, port: number] | undefined> = {
  generic: [`api.${CLUSTER}.internal`, 6443],
  iac: [`api.internal.${CLUSTER}`, 6443],
  openshift: undefined,
  aks: [`${CLUSTER}-dns-7c1d2f3a.hcp.westeurope.azmk8s.internal`, 443],
  eks: [`${CLUSTER}.gr7.eu-west-1.eks.internal`, 443],
  mke: ["proxy.local", 6444],
};
const PROXY_MESSAGE = "kubectl get vendorstatus service-proxy -o jsonpath='{.status.conditions[0].message}'";
const PARK: TypedLine[] = [
  {
    line: `kubectl -n kube-system patch daemonset kube-proxy -p '{"spec":{"template":{"spec":{"nodeSelector":{"non-vendor":"true"}}}}}'`,
    shows: /kube-proxy patched/,
  },
  { line: PROXY_MESSAGE, shows: /kube-proxy does not run/ },
];
const LEAVE_RULES: TypedLine[] = [
  {
    line: `kubectl patch dataplaneconfigurations.crd.vendor.io default --type=merge -p '{"spec":{"bpfServiceProxyIptablesCleanupEnabled":false}}'`,
    shows: /default patched/,
  },
  { line: PROXY_MESSAGE, shows: /its rules are kept/ },
];
const PROXY: Record<ClusterKind, TypedLine[]> = {
  generic: PARK,
  iac: [
    {
      line: "kubectl -n kube-system get configmap cluster-configuration -o yaml | sed 's/enabled: true/enabled: false/' | kubectl replace -f -",
      shows: /cluster-configuration replaced/,
    },
    // Stands for the tool's own update of the cluster.
    {
      line: "kubectl -n kube-system annotate configmap cluster-configuration local.vendor.io/rollout=1 --overwrite",
      shows: /annotated/,
    },
    { line: PROXY_MESSAGE, shows: /kube-proxy does not run/ },
  ],
  openshift: [{ line: PROXY_MESSAGE, shows: /kube-proxy does not run/ }],
  aks: LEAVE_RULES,
  eks: PARK,
  mke: LEAVE_RULES,
};
const IMAGE = `registry.vendor.io/vendor/vendor:${VERSION}`;
const nameOfNode = (at: number) => `$(kubectl get nodes -o jsonpath='{.items[${at}].metadata.name}')`;
const onNode = (variable: string) => `--overrides='{"spec":{"nodeName":"'$${variable}'"}}'`;

const UNINSTALL: TypedStep = {
  title: "Uninstall",
  lines: [
    { line: "kubectl delete pod web client --now", shows: /"client" deleted/ },
    { line: "kubectl delete -f custom-resources.yaml --timeout=5m", shows: /deleted/ },
    {
      line: "kubectl delete --ignore-not-found -f manifests/vendor-operator.yaml --timeout=5m | tail -1",
      shows: /deleted/,
    },
    { line: "kubectl delete -f manifests/operator-crds.yaml --timeout=5m | tail -1", shows: /deleted/ },
    { line: "kubectl apply -f manifests/node-cleanup.yaml", shows: /node-cleanup created/ },
    {
      line: "kubectl -n vendor-cleanup rollout status daemonset node-cleanup --timeout=5m | tail -1",
      shows: /successfully rolled out/,
    },
    // The namespace goes first, and may have taken the DaemonSet along.
    {
      line: "kubectl delete --ignore-not-found -f manifests/node-cleanup.yaml --timeout=5m",
      shows: /"vendor-cleanup" deleted/,
    },
    { line: "kubectl get nodes -o jsonpath='{.items[*].metadata.annotations}' | grep -c vendor.io/", shows: /^0$/ },
    { line: "kubectl get nodes", shows: /( NotReady .*){2}/s },
  ],
};

/** The installation procedure of the specification with kubectl and the published files, and traffic by it. */
export function eightSteps(kind: ClusterKind): TypedStep[] {
  const address = ADDRESS[kind];
  const cloudDns = kind === "iac" || kind === "eks";
  return [
    {
      title: "1. A cluster whose kernels are recent enough",
      lines: [
        {
          line: "kubectl get nodes -o custom-columns=NAME:.metadata.name,KERNEL:.status.nodeInfo.kernelVersion,READY:'.status.conditions[?(@.type==\"Ready\")].status'",
          shows: /False\n.*False/,
        },
      ],
    },
    {
      title: "2. The endpoint ConfigMap, before the operator",
      lines: [
        { line: "kubectl create namespace vendor-operator", shows: /created/ },
        ...(address
          ? [
              {
                line: `kubectl -n vendor-operator create configmap orchestrator-services-endpoint --from-literal=ORCHESTRATOR_SERVICE_HOST=${address[0]} --from-literal=ORCHESTRATOR_SERVICE_PORT=${address[1]}`,
                shows: /created/,
              },
            ]
          : []),
      ],
    },
    {
      title: "3. CRDs and the operator, without the custom resources",
      lines: [
        { line: "kubectl apply --server-side -f manifests/operator-crds.yaml | tail -1", shows: /serverside-applied/ },
        {
          line: "kubectl apply --server-side -f manifests/vendor-operator.yaml | tail -1",
          shows: /serverside-applied/,
        },
      ],
    },
    {
      title: "4. The cloud's name server, in AWS-like clouds",
      lines: [
        ...(cloudDns
          ? [
              {
                line: `kubectl -n vendor-operator patch deployment vendor-operator -p '{"spec":{"template":{"spec":{"dnsPolicy":"None","dnsConfig":{"nameservers":["169.254.169.253"]}}}}}'`,
                shows: /patched/,
              },
            ]
          : []),
        {
          line: "kubectl -n vendor-operator rollout status deployment vendor-operator --timeout=5m | tail -1",
          shows: /successfully rolled out/,
        },
      ],
    },
    {
      title: "5. The custom resources, edited",
      lines: [
        {
          line: "sed 's/^  vendorNetwork:$/&\\n    linuxDataplane: BPF/; s/Management: Enabled/Management: Disabled/' manifests/custom-resources.yaml > custom-resources.yaml",
          shows: /^$/,
        },
        { line: "diff manifests/custom-resources.yaml custom-resources.yaml", shows: /> {5}linuxDataplane: BPF/ },
      ],
    },
    {
      title: "6. Created",
      lines: [
        { line: "kubectl create -f custom-resources.yaml", shows: /installation.*created\n.*apiserver.*created/ },
      ],
    },
    {
      title: "7. The status, until the installation is complete",
      lines: [
        { line: "kubectl wait --for=condition=Ready installation/default --timeout=10m", shows: /condition met/ },
        { line: "kubectl get installation", shows: /^default +BPF +v3\S+ +True +False +False/m },
        { line: "kubectl get vendorstatus", shows: /^apiserver +True +False +False.*^network +True +False +False/ms },
      ],
    },
    { title: "8. kube-proxy", lines: PROXY[kind] },
    {
      title: "A Service, from a pod on the other node",
      lines: [
        { line: `FIRST=${nameOfNode(0)}; SECOND=${nameOfNode(1)}`, shows: /^$/ },
        {
          line: `kubectl run web --image=${IMAGE} ${onNode("SECOND")} --command -- vendor probe serve --tcp 8080`,
          shows: /created/,
        },
        { line: "kubectl expose pod web --port=80 --target-port=8080", shows: /exposed/ },
        { line: "kubectl wait --for=condition=Ready pod/web --timeout=5m", shows: /condition met/ },
        {
          line: `kubectl run client --image=${IMAGE} ${onNode("FIRST")} --restart=Never --command -- vendor probe connect "$(kubectl get service web -o jsonpath={.spec.clusterIP})":80`,
          shows: /created/,
        },
        { line: "kubectl logs client", shows: /"ok":true.*"host":"web"/ },
        { line: "kubectl get pod client -o jsonpath={.status.podIP}", shows: /^[\d.]+$/ },
      ],
    },
    ...(kind === "generic" ? [UNINSTALL] : []),
  ];
}
