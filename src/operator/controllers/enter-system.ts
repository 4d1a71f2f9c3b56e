import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { applyObject, MANAGER } from "../apply.ts";
import { errors } from "../errors.ts";
import { managedKind } from "../managed-kinds.ts";
import type { Observed } from "../observed.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { owned } from "../render/metadata.ts";
import { operatorInSystemNamespace, systemNamespace } from "../render/namespaces.ts";
import { ownerOf } from "../render-inputs.ts";
import { activeOperatorMap, claim, readActiveNamespace } from "../single-operator.ts";

/**
 * The first step into the system namespace: it must be there, the operator must have its rights in it, and no other operator may
 * be at work. Only then can what is in it be seen. Done once per run, and again after the namespace or those rights have gone: without
 * them the operator could write nothing there, for ever.
 */
export async function enterSystem(observed: Observed, hands: ReconcileContext, kind: ClusterKind): Promise<void> {
  const objects = [systemNamespace(vendorNames, kind), operatorInSystemNamespace(vendorNames)];
  if (hands.canSeeNamespace) {
    if (objects.every((object) => hands.tools.live.get(managedKind(object), object.metadata))) return;
    await hands.leaveNamespace();
  }
  const owner = ownerOf(observed)("network");
  const inputs = { owner: ownerOf(observed), version: observed.self.version };
  for (const object of objects) {
    await observeNamespace(hands, object);
    await applyObject(hands.tools, owned(object, "network", inputs));
  }
  const { client } = hands.tools;
  const { namespace } = observed.self;
  const active =
    (await readActiveNamespace(client)) ?? (await claim(client, activeOperatorMap(namespace, owner), MANAGER));
  if (active !== undefined && active !== namespace) throw errors.SECOND_OPERATOR(namespace, active);
  await hands.enterNamespace();
}

/** What is inside is not watched yet; without a look, every start would write what is already there. */
async function observeNamespace({ tools }: ReconcileContext, object: KubeObject): Promise<void> {
  const kind = managedKind(object);
  if (tools.live.get(kind, object.metadata)) return;
  try {
    tools.live.wrote(kind, await tools.client.get(kind, object.metadata, { signal: tools.signal }));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
