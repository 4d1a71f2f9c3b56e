import type { KubeObject } from "../../../api/object.ts";

/** Whatever status a client sends with a new object, it starts with this one. */
export function freshStatus(status: object = {}): (object: KubeObject) => void {
  return (object) => {
    object["status"] = structuredClone(status);
  };
}
