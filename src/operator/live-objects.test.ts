import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Informer } from "../cluster/informer.ts";
import { liveObjects } from "./live-objects.ts";
import { storedKind } from "./managed-kinds.ts";

const KIND = storedKind("installation");
const REF = { name: "default" };

type Change = Parameters<Parameters<Informer<KubeObject>["onChange"]>[0]>[0];

/** What an informer shows, event by event. */
function watched() {
  const live = liveObjects();
  const objects = new Map<string, KubeObject>();
  let tell: (change: Change) => void = () => {};
  const informer = {
    get: (key: string) => objects.get(key),
    list: () => [...objects.values()],
    onChange: (listener: (change: Change) => void) => {
      tell = listener;
      return () => {};
    },
  } as unknown as Informer<KubeObject>;
  live.follow(KIND, informer);
  return {
    live,
    sees: (object: KubeObject) => {
      const type = objects.has(REF.name) ? "modified" : "added";
      objects.set(REF.name, object);
      tell({ type, key: REF.name, object } as Change);
    },
    seesNone: (object: KubeObject) => {
      objects.delete(REF.name);
      tell({ type: "deleted", key: REF.name, object } as Change);
    },
  };
}

function version(resourceVersion: number, uid = "first"): KubeObject {
  const metadata = { name: "default", uid, resourceVersion: String(resourceVersion) };
  return { apiVersion: "operator.vendor.io/v1", kind: "Installation", metadata };
}

describe("the cluster as the operator knows it", () => {
  it("is what it wrote, until the watch shows it or something newer", () => {
    const { live, sees } = watched();
    sees(version(1));
    live.wrote(KIND, version(3));
    sees(version(2));
    expect(live.get(KIND, REF)).toEqual(version(3));
    sees(version(4));
    expect(live.get(KIND, REF)).toEqual(version(4));
  });

  it("is what the watch showed, if that is newer than the late answer to a write", () => {
    const { live, sees } = watched();
    sees(version(1));
    sees(version(4));
    live.wrote(KIND, version(3));
    expect(live.get(KIND, REF)).toEqual(version(4));
    expect(live.list(KIND)).toEqual([version(4)]);
  });

  it("has no object that the watch saw go before the write of it was answered", () => {
    const { live, sees, seesNone } = watched();
    sees(version(1));
    seesNone(version(1));
    live.wrote(KIND, version(2));
    expect(live.get(KIND, REF)).toBeUndefined();
    live.wrote(KIND, version(5, "second"));
    expect(live.get(KIND, REF)).toEqual(version(5, "second"));
  });

  it("does not take the next object of a name for one that it deleted", () => {
    const { live, sees, seesNone } = watched();
    sees(version(1));
    seesNone(version(1));
    sees(version(3, "second"));
    live.deleted(KIND, version(1));
    expect(live.get(KIND, REF)?.metadata.deletionTimestamp).toBeUndefined();
  });
});
