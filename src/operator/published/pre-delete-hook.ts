import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { selectorOf } from "../render/control-plane.ts";
import { OWN_NAMESPACE } from "../render/environment.ts";
import { platformOf } from "../render/platform.ts";
import { BRIEF_RESOURCES, RESTRICTED_CONTAINER, RESTRICTED_POD } from "../render/pod-parts.ts";
import {
  clusterRole,
  clusterRoleBinding,
  type Place,
  role,
  roleBinding,
  rule,
  serviceAccount,
} from "../render/rbac.ts";
import type { OperatorSettings } from "./operator-objects.ts";

/** As the operator's pod; the annotations, labels and environment that users add are the operator's own. */
type HookSettings = OperatorSettings & { timeoutSeconds: string };

/**
 * Deletes the custom resources before helm deletes the operator: only a running operator removes what it installed, and its finalizers.
 * Helm deletes kinds that it does not know last.
 */
export function preDeleteHook(settings: HookSettings, names: Names): KubeObject[] {
  const place = { name: `${names.workloads.operator}-pre-delete`, namespace: names.namespaces.operator };
  const rights = [serviceAccount(place), ...rightsOf(names, place)];
  return [...rights.map((object) => hooked(object, "-10")), hooked(job(settings, names, place), "0")];
}

function hooked(object: KubeObject, weight: string): KubeObject {
  const annotations = {
    "helm.sh/hook": "pre-delete",
    "helm.sh/hook-weight": weight,
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    // Newer helm prints the last lines of the Job, which say what it waited for.
    ...(object.kind === "Job" ? { "helm.sh/hook-output-log-policy": "hook-failed" } : {}),
  };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function rightsOf({ groups, kinds, singleton, workloads }: Names, place: Place): KubeObject[] {
  const { group } = groups.operator;
  const { constraints } = platformOf("openshift");
  const deleted = [kinds.installation, kinds.apiServer, kinds.flowLogs, kinds.flowUI].map(({ plural }) => plural);
  return [
    clusterRole(place.name, [
      rule(group, deleted, ["get", "delete"], [singleton]),
      rule(group, [kinds.status.plural], ["list"]),
    ]),
    clusterRoleBinding(place.name, place.name, place),
    role(place, [
      rule("apps", ["deployments"], ["get"], [workloads.operator]),
      // Of the platform's own constraints only this one admits the node's network with a fixed user, as for the operator.
      ...(constraints
        ? [rule("security.openshift.io", ["securitycontextconstraints"], ["use"], [constraints.privileged])]
        : []),
    ]),
    roleBinding(place, { kind: "Role", name: place.name }, place),
  ];
}

function job(settings: HookSettings, names: Names, place: Place): KubeObject {
  const labels = selectorOf(place.name);
  const { image, dnsPolicy, dnsConfig, nodeSelector, tolerations, imagePullSecrets, priorityClassName } = settings;
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { ...place, labels },
    spec: {
      // The program itself retries until its limit; a second one would only start to wait again.
      backoffLimit: 0,
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: place.name,
          restartPolicy: "Never",
          // The pod network goes while it waits.
          hostNetwork: true,
          dnsPolicy,
          dnsConfig,
          priorityClassName,
          nodeSelector,
          tolerations,
          imagePullSecrets,
          securityContext: RESTRICTED_POD,
          containers: [
            {
              name: "pre-delete",
              image,
              command: ["vendor", "pre-delete"],
              env: [OWN_NAMESPACE, { name: "TIMEOUT_SECONDS", value: settings.timeoutSeconds }],
              envFrom: [{ configMapRef: { name: names.endpointMap.name, optional: true } }],
              resources: BRIEF_RESOURCES,
              terminationMessagePolicy: "FallbackToLogsOnError",
              securityContext: RESTRICTED_CONTAINER,
            },
          ],
        },
      },
    },
  };
}
