import type { KubeObject } from "../../api/object.ts";
import { apiServer } from "./api-server.ts";
import { caBundle } from "./ca-bundle.ts";
import { flowLogs } from "./flow-logs.ts";
import { flowUI } from "./flow-ui.ts";
import type { Component, RenderInputs } from "./inputs.ts";
import { ipPools } from "./ip-pools.ts";
import { kubeControllers } from "./kube-controllers.ts";
import { owned } from "./metadata.ts";
import { operatorInSystemNamespace, systemNamespace } from "./namespaces.ts";
import { defaultDeny } from "./network-policies.ts";
import { nodeAgent } from "./node-agent.ts";
import { policySyncDriver } from "./policy-sync-driver.ts";
import { optionalPriorityClass } from "./priority-classes.ts";

const RENDERERS: Record<Component, (inputs: RenderInputs) => KubeObject[]> = {
  network,
  ippools: ipPools,
  apiserver: apiServer,
  "flow-logs": flowLogs,
  "flow-ui": flowUI,
};

/** Every object of a component, in the order to apply them: what others refer to comes first. */
export function renderComponent(component: Component, inputs: RenderInputs): KubeObject[] {
  return RENDERERS[component](inputs).map((object) => owned(object, component, inputs));
}

/** The namespace and the operator's rights in it come before all that lives there. */
function network(inputs: RenderInputs): KubeObject[] {
  const { names, kind } = inputs;
  return [
    systemNamespace(names, kind),
    operatorInSystemNamespace(names),
    optionalPriorityClass(),
    policySyncDriver(),
    caBundle(inputs),
    defaultDeny(names.namespaces.system),
    ...nodeAgent(inputs),
    ...kubeControllers(inputs),
  ];
}
