import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import { degraded, type Outcome } from "../outcome.ts";

/** A resource under another name than default has no effect; its status reports that. */
export function misnamed(objects: readonly KubeObject[]): Outcome | undefined {
  const wrong = objects.find(({ metadata }) => metadata.name !== vendorNames.singleton);
  return wrong && misnamedOutcome(wrong);
}

export function misnamedOutcome({ kind, metadata }: KubeObject): Outcome & { kind: "degraded" } {
  const { singleton } = vendorNames;
  const message = withFix(
    `${kind} ${metadata.name} is ignored: the only one that is read is named ${singleton}.`,
    `create it under the name ${singleton}, and kubectl delete ${kind.toLowerCase()} ${metadata.name} (vendorctl explain NAME_NOT_DEFAULT)`,
  );
  return degraded("NameNotDefault", message) as Outcome & { kind: "degraded" };
}
