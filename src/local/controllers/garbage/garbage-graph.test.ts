import { describe, expect, it } from "vitest";
import type { OwnerReference } from "../../../api/object.ts";
import { PODS, REPLICA_SETS } from "../../../cluster/kinds.ts";
import { GarbageGraph, graphItem, ownerVerdict } from "./garbage-graph.ts";

function object(name: string, uid: string, ownerReferences: OwnerReference[] = [], finalizers: string[] = []) {
  const deletionTimestamp = finalizers.length > 0 ? "2026-01-01T00:00:00Z" : undefined;
  const metadata = { name, namespace: "default", uid, ownerReferences, finalizers, deletionTimestamp };
  return { apiVersion: "v1", kind: "Pod", metadata };
}
const owner = (uid: string, block = false): OwnerReference => {
  return { apiVersion: "apps/v1", kind: "ReplicaSet", name: "set", uid, blockOwnerDeletion: block };
};

describe("the graph of owners", () => {
  it("looks at an object whose owner it has not seen, and not at one whose owner is there", () => {
    const graph = new GarbageGraph();
    graph.set(graphItem(REPLICA_SETS, object("set", "s1")));
    expect(graph.set(graphItem(PODS, object("a", "p1", [owner("s1")])))).toEqual([]);
    expect(graph.set(graphItem(PODS, object("b", "p2", [owner("gone")])))).toEqual(["pods.|default|b"]);
  });

  it("takes an owner of the same name with another UID for another object", () => {
    const graph = new GarbageGraph();
    graph.set(graphItem(REPLICA_SETS, object("set", "s1")));
    graph.set(graphItem(PODS, object("a", "p1", [owner("s1")])));
    expect(graph.set(graphItem(REPLICA_SETS, object("set", "s2")))).toEqual(["pods.|default|a"]);
  });

  it("wakes an owner that waits in the foreground when its last dependent is gone", () => {
    const graph = new GarbageGraph();
    graph.set(graphItem(PODS, object("a", "p1", [owner("s1", true)])));
    graph.set(graphItem(REPLICA_SETS, object("set", "s1", [], ["foregroundDeletion"])));
    expect(graph.remove("pods.|default|a")).toEqual(["replicasets.apps|default|set"]);
  });
});

describe("the verdict on an object", () => {
  it.each([
    ["no owners", [], "nothing"],
    ["its owner is there", ["present"], "nothing"],
    ["its owner is gone", ["absent"], "delete"],
    ["its owner waits for it to go", ["waiting"], "delete"],
    ["one of two owners is gone", ["absent", "present"], "dropReferences"],
    ["nobody can say whether its owner is there", ["unknown"], "nothing"],
    ["one owner is gone and nobody can say of the other", ["absent", "unknown"], "nothing"],
  ] as const)("%s", (_what, states, does) => {
    const owners = states.map((state, index) => ({ uid: String(index), state }));
    expect(ownerVerdict(owners, false).do).toBe(does);
  });
});
