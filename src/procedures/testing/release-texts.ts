import type { Names } from "../../api/names.ts";
import type { InstallFiles, ReadFile } from "../plans/install/install-operator.ts";

/** For tests of plans: the files of a release, as short as they can be, in either dialect. */
export function releaseTexts(names: Names): InstallFiles {
  const { group } = names.groups.operator;
  const network = names.fields.linuxDataplane.split(".")[1];
  const file = (name: string, text: string): ReadFile => ({ name, text, digest: `sha256:${name}` });
  return {
    from: "built in",
    definitions: file(
      names.manifests.operatorCrds,
      `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: installations.${group}\n`,
    ),
    operator: file(
      names.manifests.operator,
      `apiVersion: v1
kind: Namespace
metadata:
  name: ${names.namespaces.operator}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${names.workloads.operator}
  namespace: ${names.namespaces.operator}
`,
    ),
    customResources: file(
      names.manifests.customResources,
      `# What the operator installs.
apiVersion: ${group}/v1
kind: Installation
metadata:
  name: default
spec:
  variant: ${names.variant}
  ${network}:
    # Who looks after the proxy.
    ${names.fields.serviceProxyManagement.split(".")[2]}: Disabled
---
apiVersion: ${group}/v1
kind: APIServer
metadata:
  name: default
spec: {}
`,
    ),
  };
}
