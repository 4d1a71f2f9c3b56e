import { type Noun, vendorNames } from "../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectMeta } from "../../api/object.ts";

/** A v3 resource as it is stored, under its own name. */
export function v3Object(noun: Noun, name: string, spec: object, metadata: Omit<ObjectMeta, "name"> = {}): KubeObject {
  return {
    apiVersion: groupVersion(vendorNames.groups.stored),
    kind: vendorNames.kinds[noun].kind,
    metadata: { name, ...metadata },
    spec,
  };
}

/** A policy is stored under its tier and its name; people leave the default tier out. */
export function storedPolicyName(name: string): string {
  return `default.${name}`;
}

/** A resource of the operator. */
export function operatorObject(noun: Noun, name: string, spec: object): KubeObject {
  return {
    apiVersion: groupVersion(vendorNames.groups.operator),
    kind: vendorNames.kinds[noun].kind,
    metadata: { name },
    spec,
  };
}
